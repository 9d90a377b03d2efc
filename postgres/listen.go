package postgres

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redlatch/redlatch/node"
)

// ears hear the notifications of the table, over a connection of their own. A
// pooler in transaction mode accepts a LISTEN and delivers nothing, so a message
// to itself has to come back first. Without it waiters poll.
type ears struct {
	node *Node

	mu        sync.Mutex
	listeners map[int]func(node.Wake)
	next      int
	hearing   bool // a message came back
	running   bool
	cancel    context.CancelFunc
	done      chan struct{}
	closed    bool

	// waiters are those that wait through this node, and when each last asked.
	// Notifications for others are not passed on.
	waiters map[waiter]time.Time
	pruned  time.Time
}

// waiter is a value that waits for a name.
type waiter struct{ name, value string }

// remembered is how long a waiter is known after it last asked. It asks far more
// often.
const remembered = 2 * time.Minute

// expect notes that somebody may wait through this node.
func (e *ears) expect(w waiter) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiters == nil {
		e.waiters = map[waiter]time.Time{}
	}
	e.waiters[w] = now
	if now.Sub(e.pruned) > remembered {
		e.pruned = now
		maps.DeleteFunc(e.waiters, func(_ waiter, at time.Time) bool { return now.Sub(at) > remembered })
	}
}

// Listen calls f with every notification of the table, for all waiters.
func (n *Node) Listen(f func(node.Wake)) (stop func()) {
	e := &n.ears
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listeners == nil {
		e.listeners = map[int]func(node.Wake){}
	}
	e.next++
	id := e.next
	e.listeners[id] = f
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.listeners, id)
	}
}

// hears reports whether waiters that ask now will be notified.
func (e *ears) hears() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hearing && len(e.listeners) > 0
}

// open opens the connection, if somebody listens.
func (e *ears) open() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running || e.closed || e.node.poll || len(e.listeners) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.running, e.cancel, e.done = true, cancel, make(chan struct{})
	go func() {
		defer close(e.done)
		e.run(ctx)
	}()
}

func (e *ears) close() {
	e.mu.Lock()
	e.closed = true
	cancel, done := e.cancel, e.done
	e.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

// knows reports whether somebody waits through this node.
func (e *ears) knows(w waiter) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ours := e.waiters[w]
	return ours
}

// tell passes a notification on.
func (e *ears) tell(w node.Wake) {
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.listeners))
	e.mu.Unlock()
	for _, f := range all {
		f(w)
	}
}

const (
	// echoLimit is how long the message to itself may take.
	echoLimit = 2 * time.Second
	// deafFor is how long to wait before the next try.
	deafFor = 5 * time.Second
)

// run hears until the node is closed, and connects again when it has to.
func (e *ears) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := e.hear(ctx)
		e.mu.Lock()
		e.hearing = false
		e.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		e.tell(node.Wake{Kind: node.WakeMissed, Err: err})
		select {
		case <-ctx.Done():
		case <-time.After(deafFor):
		}
	}
}

// listen opens a connection that listens, and sends a message to it.
func (n *Node) listen(ctx context.Context) (conn *pgx.Conn, echo string, err error) {
	config := n.store.pool.Config().ConnConfig.Copy()
	conn, err = pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, "", err
	}
	echo = "echo " + rand.Text()
	if _, err = conn.Exec(ctx, "LISTEN "+pgx.Identifier{n.channel}.Sanitize(), mode); err == nil {
		_, err = n.store.pool.Exec(ctx, "SELECT pg_notify($1, $2)", mode, n.channel, echo)
	}
	if err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, "", err
	}
	return conn, echo, nil
}

// hearsItself reports whether a message comes back.
func (n *Node) hearsItself(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, echoLimit)
	defer cancel()
	conn, echo, err := n.listen(ctx)
	if err != nil {
		return false
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		m, err := conn.WaitForNotification(ctx)
		if err != nil || m.Payload == echo {
			return err == nil
		}
	}
}

// hear hears over one connection, until that breaks.
func (e *ears) hear(ctx context.Context) error {
	conn, echo, err := e.node.listen(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	limited, cancel := context.WithTimeout(ctx, echoLimit)
	defer cancel()
	wait := limited
	for {
		m, err := conn.WaitForNotification(wait)
		if err != nil {
			return err
		}
		if m.Payload == echo {
			e.mu.Lock()
			e.hearing = true
			e.mu.Unlock()
			wait = ctx
			e.tell(node.Wake{Kind: node.WakeMissed}) // what came before may have been missed
			continue
		}
		if name, w, ok := parseMessage(m.Payload); ok && e.knows(waiter{name, w.Value}) {
			e.tell(w)
		}
	}
}
