package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/internal/conns"
)

// conn is one connection. A goroutine of its own, or a caller that is alone, reads
// the replies and delivers them, so nothing that it calls may block.
type conn struct {
	driver *driver
	gone   atomic.Bool   // it is broken
	rests  atomic.Bool   // its goroutine does not read: a caller may
	wake   chan struct{} // for the goroutine that writes
	turns  chan struct{} // for the goroutine that reads
	parts  [16]string    // memory for a reply, of the one that reads
	last   bool          // nothing was pending after the last reply; of the same

	connecting context.Context // ends when the connection is broken
	stop       context.CancelFunc

	mu      sync.Mutex
	socket  io.ReadWriteCloser // nil while it is being connected
	input   *resp.Reader       // is used by the one that reads
	reader  reader
	file    *os.File // the same, if a caller may read; else nil
	calm    int      // how many replies the connection's goroutine reads at least before it rests
	broken  error    // why it is of no use any more
	pending queue    // the requests without a reply, in the order in which they are sent
	unsent  int      // how many of the last of them are to be written
	spare   []byte   // memory for what is written
	writing bool     // somebody writes, and goes on while something is to be written
	passing bool     // replies to a batch are passed on: what is sent meanwhile is written after that
	batches batches
	heard   uint64 // how many replies have arrived
	late    int    // how many in a row came too late, of requests sent one after the other
	since   uint64 // what had arrived when the last of them was counted
	timer   *time.Timer
	armed   time.Duration // when the timer fires; 0 if it does not
	version int           // of the protocol
	inboxes subscriptions // replaced, not changed
}

// began is what times are counted from.
var began = time.Now()

// inPlace is how many requests may be without a reply for one more to be written
// by its sender. They fit into the buffer of the socket, so writing does not
// block. More than these are left to a goroutine, and are written together.
const inPlace = 4

// start sends a request. It returns false if the connection is broken.
func (c *conn) start(r request) bool {
	if r.limit > 0 && r.deadline == 0 {
		r.deadline = time.Since(began) + r.limit
	}
	c.mu.Lock()
	if c.broken != nil {
		c.mu.Unlock()
		return false
	}
	if c.reader == nobody {
		if unread(c.file) {
			c.mu.Unlock()
			c.fail(errUnasked)
			return false
		}
		c.resume()
	}
	r.heard = c.heard
	c.pending.push(r)
	c.arm(r.deadline)
	if c.socket != nil {
		c.unsent++
	}
	c.flush()
	return true
}

// again sends a request again that was not executed, behind all others. It
// returns false if that would be behind a later one. A release that is behind an
// equal one is not sent: it has that one's answer. The mutex is held.
func (c *conn) again(r request) bool {
	if later := c.overtaking(&r); later != nil {
		if later.call.Replaces(&r.call) {
			later.join(&r)
			c.arm(later.deadline)
			return true
		}
		return false
	}
	r.heard, r.batch = c.heard, 0
	c.pending.push(r)
	c.unsent++
	return true
}

// flush writes what is to be written, or has it written. The mutex is held, and is
// unlocked: to wake a goroutine takes longer than all else that it protects.
func (c *conn) flush() {
	if c.writing || c.passing || c.unsent == 0 {
		c.mu.Unlock()
		return
	}
	c.writing = true
	left := c.pending.len() > inPlace || !c.write() || c.unsent > 0
	c.writing = left
	c.mu.Unlock()
	if left {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// write writes what is to be written. It returns false if the connection is
// broken. The mutex is held; it is unlocked meanwhile.
func (c *conn) write() bool {
	b, socket := c.compose(c.spare[:0]), c.socket
	c.spare = nil
	c.mu.Unlock()
	n, err := socket.Write(b)
	c.mu.Lock()
	for rest := b; err != nil && c.broken == nil; {
		rest = rest[n:]
		replaced := socket != c.socket // the rest is for the new one
		socket = c.socket
		c.mu.Unlock()
		if replaced {
			n, err = socket.Write(rest)
		} else {
			c.fail(err)
		}
		c.mu.Lock()
	}
	if cap(b) <= 1<<20 {
		c.spare = b
	}
	return c.broken == nil
}

// writer writes what callers leave to it, until the connection is broken.
func (c *conn) writer() {
	for range c.wake {
		// Goroutines that are about to send something come first, so that it is
		// written with the rest.
		runtime.Gosched()
		c.mu.Lock()
		for c.unsent > 0 && !c.passing && c.broken == nil && c.write() {
		}
		c.writing = false
		gone := c.broken != nil
		c.mu.Unlock()
		if gone {
			return
		}
	}
}

// connectLimit is how long a server may take to let us in, if no request gives up
// before.
const connectLimit = 30 * time.Second

// run connects, and reads until the connection is broken.
func (c *conn) run() {
	ctx, cancel := context.WithTimeout(c.connecting, connectLimit)
	a := c.driver.address
	socket, _, version, err := conns.Connect(ctx, conns.Login{
		Address: a.Hosts[0], TLS: a.TLS, Username: a.Username, Password: a.Password, Database: a.Database,
	})
	cancel()
	if err != nil {
		c.fail(err)
		return
	}
	c.mu.Lock()
	if c.broken != nil {
		c.mu.Unlock()
		socket.Close()
		return
	}
	c.socket, c.version, c.input, c.calm = socket, version, resp.NewReader(c), calmAfter
	c.pending.drop(c.pending.len())
	c.unsent = c.pending.len()
	c.flush()
	go c.writer()
	for c.receive() && c.rest() {
	}
}

// arrived delivers a reply or a message. It returns false if the connection is
// broken.
func (c *conn) arrived(reply resp.Reply, err error) bool {
	c.mu.Lock()
	c.heard++
	inboxes := c.inboxes
	confirmed := reply.Push && confirms(reply)
	if c.broken != nil || c.pending.len() <= c.unsent && (!reply.Push || confirmed) {
		c.mu.Unlock()
		c.fail(fmt.Errorf("redlatch: the server sent %.60q without a request", reply.String()))
		return false
	}
	var r request
	if !reply.Push || confirmed {
		if c.isBehind() {
			c.mu.Unlock()
			c.fail(errBehind)
			return false
		}
		n := c.pending.at(0).batch
		c.last = c.pending.len() == max(n, 1)
		if n > 0 {
			c.divide(n, reply, err) // unlocks the mutex
			return true
		}
		r = c.pending.pop()
	}
	again := !r.givenUp && r.unknownScript(err)
	if again {
		r.source = true
		if again = c.again(r); !again {
			err = errOvertaken
		}
	}
	c.flush()
	switch {
	case again:
	case reply.Push && !confirmed:
		inboxes.message(reply)
	case err != nil:
		r.failed(err)
	default:
		r.answered(reply, c.parts[:])
	}
	return true
}

var errOvertaken = fmt.Errorf("redlatch: a later request was sent before it (%w)", node.ErrUnsent)

// overtaking returns the first later request about the same name and value that was
// sent: a release, perhaps, which has to come last. The mutex is held.
func (c *conn) overtaking(r *request) *request {
	for i := range c.pending.len() {
		if later := c.pending.at(i); !later.givenUp && later.concerns(r) {
			return later
		}
	}
	return nil
}

// fail ends the connection, and its requests with an error. Those that were not
// sent, and have time left, wait for the next connection, unless this one was
// refused.
func (c *conn) fail(err error) {
	c.driver.mu.Lock()
	c.mu.Lock()
	if c.broken != nil {
		c.mu.Unlock()
		c.driver.mu.Unlock()
		return
	}
	c.broken = err
	c.gone.Store(true)
	if c.timer != nil {
		c.timer.Stop()
	}
	c.stop()
	socket, inboxes, sent := c.socket, c.inboxes, c.pending.len()-c.unsent
	if socket == nil {
		sent = 0
	}
	requests := c.pending.all()
	c.pending, c.unsent = queue{}, 0
	if c.reader != itself {
		c.turns <- struct{}{} // the goroutine of the connection ends
	}
	c.mu.Unlock()
	if moved := c.driver.moves(requests[sent:]); len(moved) > 0 && (socket != nil || err == conns.ErrSilent) {
		c.driver.connect(moved)
		requests = requests[:sent] // nobody waits for the others
	}
	c.driver.mu.Unlock()
	if socket != nil {
		socket.Close()
	}
	select {
	case c.wake <- struct{}{}: // the writer ends
	default:
	}
	for _, s := range inboxes {
		s.broken <- err
	}
	unsent := err
	if errors.Is(err, node.ErrUnsent) {
		err = errors.New(err.Error()) // these may have been sent
	} else {
		unsent = fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	for i, r := range requests {
		if i < sent {
			r.failed(err)
		} else {
			r.failed(unsent)
		}
	}
}
