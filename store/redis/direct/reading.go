package direct

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/redlatch/redlatch/internal/callerreads"
	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/store/redis/internal/conns"
)

// This file decides who reads the replies of a connection. By default it is a
// goroutine of the connection. But to wake that goroutine, and to have it wake the
// caller, costs more than the reply itself. So a caller that is alone on the
// connection reads its own reply.
//
//	          all is answered              lend
//	  itself ─────────────────▶ nobody ◀────────▶ caller
//	    ▲                         │     all is        │
//	    │         request         │     answered      │ something is pending
//	    └─────────────────────────┴───────────────────┘
//
// A request that arrives while a caller reads is sent at once. Its reply is read by
// the caller, or, if that has left, by the connection's goroutine.

// reader is who reads the replies of a connection. Only that one uses the buffer
// of what has arrived.
type reader uint8

const (
	itself reader = iota // the goroutine of the connection
	nobody               // no reply is pending, and nobody listens
	caller               // a caller that waits for its own reply
)

const (
	// longestRead is how long a caller reads. Meanwhile it is not notified of
	// anything else, such as the end of its context.
	longestRead = time.Millisecond

	// calmAfter is how many replies must come one by one before callers read, and
	// slowCalm the same after a reply that took too long.
	calmAfter = 4
	slowCalm  = 16
)

// Lend makes the caller the one that reads the replies; see callerreads.Lender. Where nobody
// calls it, the goroutine of the connection reads at a lower cost.
func (d *driver) Lend() callerreads.Loan {
	if !d.lends.Load() {
		d.lends.Store(!d.address.NoCallerReads)
	}
	c := d.conn.Load()
	if c == nil || !c.rests.Load() {
		return nil // without the mutex, which a crowd of callers wants
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reader != nobody || c.broken != nil || unread(c.file) {
		return nil
	}
	c.reader = caller
	return c.read
}

var errUnasked = errors.New("redlatch: the server hung up, or sent something that nobody asked for")

// read reads on the goroutine of a caller; see callerreads.Loan. Such replies are lines:
// anything else is left to the connection's goroutine, since it may come in parts.
func (c *conn) read(done <-chan struct{}, limit time.Duration) {
	calm := calmAfter
	for c.goesOn(calm == calmAfter && limit >= longestRead && len(done) == 0, calm) {
		if err := c.input.Fill(); os.IsTimeout(err) {
			calm = slowCalm
		} else if err != nil {
			c.fail(err)
			return
		}
		for c.input.Line() { // all that has arrived is passed on, also what is for others
			if !c.receive() {
				return
			}
		}
	}
}

// goesOn reports whether a caller goes on reading: if it wants to, and a reply is
// pending. Otherwise, if somebody still waits, the connection's goroutine does, for so
// many replies at least.
func (c *conn) goesOn(wants bool, calm int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.broken != nil:
	case c.isIdle():
		c.reader = nobody
	case wants && c.pending.len() > 0 && c.input.Buffered() == 0:
		return true
	default:
		c.calm = calm
		c.resume()
	}
	return false
}

// isIdle reports whether there is nothing to read. It is called by the one that
// reads. The mutex is held.
func (c *conn) isIdle() bool {
	return c.pending.len() == 0 && len(c.inboxes) == 0 && c.input.Buffered() == 0
}

// resume starts the connection's goroutine, which reads. The mutex is held.
func (c *conn) resume() {
	if socket, err := net.FileConn(c.file); err == nil {
		socket.(*net.TCPConn).SetKeepAliveConfig(conns.KeepAlive) // FileConn sets another
		c.socket = socket
	}
	c.file.Close() // if it still is the socket, nothing can be read
	c.file, c.reader = nil, itself
	c.rests.Store(false)
	c.turns <- struct{}{}
}

// rest stops the connection's goroutine after the last reply, unless
// requests came together of late, until it is its turn again. It is called when that
// reply was passed on: what replies do happens in their order. It returns false if
// the connection is broken.
func (c *conn) rest() bool {
	if !c.last || !c.driver.lends.Load() {
		return true
	}
	c.mu.Lock()
	if c.broken == nil && c.isIdle() {
		if c.calm--; c.calm < 0 {
			c.file, c.calm = blocking(c.socket), slowCalm
		}
	}
	rests := c.file != nil
	if rests {
		c.socket, c.reader = c.file, nobody
		c.rests.Store(true)
	}
	c.mu.Unlock()
	if rests {
		<-c.turns
	}
	return !c.gone.Load()
}

// Read reads from the present socket, for the one that reads.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	socket := c.socket
	c.mu.Unlock()
	return socket.Read(b)
}

// receive reads one reply, and delivers it. It returns false if the connection is
// broken.
func (c *conn) receive() bool {
	reply, err := c.input.Read()
	if _, refused := err.(resp.ServerError); err != nil && !refused {
		c.fail(err)
		return false
	}
	return c.arrived(reply, err)
}
