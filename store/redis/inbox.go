package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Subscriber is implemented by a Driver that can subscribe. Over a driver that
// cannot, waiters poll.
type Subscriber interface {
	Driver
	// Subscribe listens to a channel until ctx ends or the connection breaks,
	// and returns why. It calls up once the server has confirmed the
	// subscription, and message with every message after that. It notices a
	// connection that went silent within a few seconds.
	Subscribe(ctx context.Context, channel string, up func(), message func(text string)) error
}

// inboxPrefix begins the names of the channels on which notifications arrive.
const inboxPrefix = reserved + "inbox:"

// How long to wait before a broken inbox is opened again, and before one that
// the server denied is.
const (
	reopenLeast  = 10 * time.Millisecond
	reopenMost   = time.Second
	reopenDenied = time.Minute
)

// inbox is a node's one channel, on which the notifications for all names
// arrive. It is opened when the first waiter needs it.
type inbox struct {
	id     string
	driver Subscriber // nil if the driver cannot subscribe
	quit   context.Context
	stop   context.CancelFunc

	state  atomic.Int32
	mu     sync.Mutex
	listen func(node.Wake) // nil if nobody listens
	opened bool
}

// The states of an inbox.
const (
	inboxUnused int32 = iota // nobody listens: waiters poll
	inboxShut                // not open yet, or broken
	inboxOpen
	inboxDenied // the server does not allow it: waiters poll
)

func (b *inbox) init(driver Driver) {
	var id [8]byte
	rand.Read(id[:])
	b.id = hex.EncodeToString(id[:])
	if driver.Kind() == Cluster {
		b.id = "+" + b.id // subscribers on other servers are not counted
	}
	b.driver, _ = driver.(Subscriber)
	b.quit, b.stop = context.WithCancel(context.Background())
}

// place says where a request may wait.
type place struct {
	wait  bool
	inbox string // empty for a waiter that polls
}

// place returns where a request may wait in the present state. While the inbox
// is shut the request is not queued: a notification would reach nobody.
func (b *inbox) place(req *node.Request) place {
	state := b.state.Load()
	p := place{wait: req.Wait && state != inboxShut}
	if state == inboxOpen || state == inboxShut {
		p.inbox = b.id
	}
	return p
}

// Listen has f called with the notifications of the server. The inbox is opened
// when the first waiter needs it.
func (n *Node) Listen(f func(node.Wake)) (stop func()) {
	b := &n.inbox
	if b.driver == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listen = f
	b.state.CompareAndSwap(inboxUnused, inboxShut)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.listen = nil
		b.stop()
	}
}

func (b *inbox) close() { b.stop() }

// open begins to listen, unless it has begun already.
func (b *inbox) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened || b.listen == nil {
		return
	}
	b.opened = true
	go b.run(b.listen)
}

// run keeps the inbox open.
func (b *inbox) run(listen func(node.Wake)) {
	delay := reopenLeast
	for b.quit.Err() == nil {
		err := b.mayPublish()
		if err == nil {
			err = b.subscribe(listen, &delay)
		}
		if denied(err) {
			b.state.Store(inboxDenied)
			listen(node.Wake{Kind: node.WakeMissed, Err: err})
			delay = reopenDenied
		} else if b.state.Load() != inboxDenied {
			b.state.Store(inboxShut)
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-b.quit.Done():
			timer.Stop()
		}
		delay = min(2*delay, max(reopenMost, delay))
	}
}

// subscribe listens until the subscription ends, and returns why.
func (b *inbox) subscribe(listen func(node.Wake), delay *time.Duration) error {
	return b.driver.Subscribe(b.quit, inboxPrefix+b.id, func() {
		*delay = reopenLeast
		b.state.Store(inboxOpen)
		// Notifications before this moment were missed: all waiters ask again.
		listen(node.Wake{Kind: node.WakeMissed})
	}, func(text string) {
		if wake, ok := parseWake(text); ok {
			listen(wake)
		}
	})
}

// mayPublish finds out whether the scripts may publish: a waiter that listens
// in vain would wait for long.
func (b *inbox) mayPublish() error {
	ctx, cancel := context.WithTimeout(b.quit, reopenMost)
	defer cancel()
	reply, err := b.driver.Eval(ctx, Call{Script: publishScript, Keys: []string{reserved + "inbox"}, Args: []string{inboxPrefix + b.id}})
	if err == nil && len(reply) == 1 && reply[0] != "" {
		err = NewServerError(reply[0])
	}
	return err
}

// denied reports that the server understood the request and refused it.
func denied(err error) bool {
	var server *ServerError
	return errors.As(err, &server) && (server.Code == "NOPERM" || server.Code == "ERR")
}

// parseWake reads a message: t, n or c, the fence in 20 digits, the value.
func parseWake(text string) (node.Wake, bool) {
	if len(text) < 22 {
		return node.Wake{}, false
	}
	w := node.Wake{Value: text[21:]}
	switch text[0] {
	case 't':
		w.Kind = node.WakeTurn
	case 'n':
		w.Kind = node.WakeNear
	case 'c':
		w.Kind = node.WakeCall
	default:
		return node.Wake{}, false
	}
	w.Fence, _ = node.ParseToken(text[1:21]) // zeros mean none
	return w, true
}
