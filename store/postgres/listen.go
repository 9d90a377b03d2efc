package postgres

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// echoLimit is how long the message to itself, or the answer to a probe, may
	// take.
	echoLimit = 2 * time.Second
	// probeEvery is how long a connection may be silent before it is probed. A
	// connection that something on the way has forgotten stays silent for ever.
	probeEvery = 3 * time.Second
)

// listen opens a connection that listens, and sends a message to it.
func (s *store) listen(ctx context.Context, process string) (conn *pgx.Conn, echo string, err error) {
	conn, err = pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig.Copy())
	if err != nil {
		return nil, "", err
	}
	echo = "echo " + rand.Text()
	if _, err = query(ctx, conn.PgConn(), `LISTEN "`+s.channelOf(process)+`"`); err == nil {
		_, err = s.query(ctx, "SELECT pg_notify('"+s.channelOf(process)+"', '"+echo+"')")
	}
	if err != nil {
		hangUp(ctx, conn)
		return nil, "", err
	}
	return conn, echo, nil
}

// hangUp closes a connection, which may be silent.
func hangUp(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	conn.Close(ctx)
}

// hearsItself reports whether a message comes back.
func (s *store) hearsItself(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, echoLimit)
	defer cancel()
	came := false
	_ = s.Hear(ctx, rand.Text(), func() { came = true; cancel() }, func(string) {})
	return came
}

// listener is the connection that listens for all nodes of this program that have the
// same table and address. There is only one, because at a notification the server wakes
// every connection that listens.
type listener struct {
	ears  map[*ear]bool
	hears bool // no wake is missed
	stop  func()
}

// ear is a node that hears.
type ear struct {
	process string
	ready   func()
	heard   func(string)
	ended   chan error
}

var (
	hearing sync.Mutex // guards listeners and what they have
	// listeners are all of them, by channel, and by address or pool.
	listeners = map[[2]any]*listener{}
)

func (l *listener) each(f func(*ear)) {
	hearing.Lock()
	defer hearing.Unlock()
	for e := range l.ears {
		f(e)
	}
}

// Hear hears the notifications for a process, over a listener.
func (s *store) Hear(ctx context.Context, process string, ready func(), heard func(string)) error {
	key := [2]any{s.channelOf(process), s.pool}
	if s.own {
		key[1] = s.pool.Config().ConnString()
	}
	e := &ear{process, ready, heard, make(chan error, 1)}
	hearing.Lock()
	l := listeners[key]
	if l == nil {
		on, stop := context.WithCancel(context.Background())
		l = &listener{ears: map[*ear]bool{}, stop: stop}
		listeners[key] = l
		go func() {
			err := s.hear(on, process, func() { l.each(func(e *ear) { l.hears = true; e.ready() }) }, func(text string) {
				to, text, _ := strings.Cut(text, " ")
				l.each(func(e *ear) {
					if e.process == to {
						e.heard(text)
					}
				})
			})
			l.each(func(e *ear) { delete(listeners, key); e.ended <- err })
		}()
	}
	if l.ears[e] = true; l.hears {
		ready()
	}
	hearing.Unlock()
	defer func() {
		hearing.Lock()
		defer hearing.Unlock()
		if delete(l.ears, e); len(l.ears) == 0 {
			if l.stop(); listeners[key] == l {
				delete(listeners, key)
			}
		}
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-e.ended:
		return err
	}
}

// hear hears a listener until that breaks or goes silent. A pooler in transaction mode
// accepts a LISTEN and delivers nothing, so a message to itself has to come back first.
func (s *store) hear(ctx context.Context, process string, ready func(), heard func(string)) error {
	limited, cancel := context.WithTimeout(ctx, echoLimit)
	defer cancel()
	conn, echo, err := s.listen(limited, process)
	if err != nil {
		return err
	}
	defer hangUp(ctx, conn)
	for hears := false; ; {
		wait, cancel := limited, context.CancelFunc(func() {})
		if hears {
			wait, cancel = context.WithTimeout(ctx, probeEvery)
		}
		m, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err != nil && hears && wait.Err() == context.DeadlineExceeded && ctx.Err() == nil:
			if err := probe(ctx, conn); err != nil {
				return err
			}
		case err != nil:
			return err
		case m.Payload == echo:
			hears = true
			ready()
		default:
			heard(m.Payload)
		}
	}
}

// probe checks that a connection which is silent still leads to the server. It
// sends no notification: that would wake every session that listens.
func probe(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, echoLimit)
	defer cancel()
	_, err := query(ctx, conn.PgConn(), "SELECT 1")
	return err
}
