package direct

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/callerreads"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/node"
)

// lent has a caller read the connection of a driver, after some lone requests.
func lent(t testing.TB, d *driver) (loan callerreads.Loan) {
	t.Helper()
	poll.Until(t, "a caller may read", func() bool {
		for range 2 * slowCalm {
			if loan = d.Lend(); loan != nil {
				return true
			}
			d.do(context.Background(), "PING")
		}
		return false
	})
	return loan
}

var nobodyIsDone = make(chan struct{})

// TestCallerReadsOnlyWhereItIsAlone has a caller read, and meanwhile other requests
// arrive, replies that are no lines, and a subscription. The connection's goroutine
// reads what the caller leaves.
func TestCallerReadsOnlyWhereItIsAlone(t *testing.T) {
	s := newServer(t, func(command []string) string {
		switch command[len(command)-1] {
		case "first", "silent":
			return "" // with the second
		case "second":
			return "+first\r\n+second\r\n$5\r\nth"
		case "third":
			return "ird\r\n"
		case "channel":
			return ">3\r\n+subscribe\r\n+channel\r\n:1\r\n"
		}
		return ":1\r\n"
	})
	d := s.driver(t)
	loan := lent(t, d)
	if d.Lend() != nil {
		t.Error("two callers may read")
	}
	loan(nobodyIsDone, long) // nothing is to be read
	loan = lent(t, d)
	outcomes := startAll(d, long, script("first"), script("second"), script("third"))
	loan(nobodyIsDone, long)
	for i, want := range []string{"first", "second", "third"} {
		if a := outcomes()[i]; a != (outcome{want, nil}) {
			t.Errorf("got %v, want %s", a, want)
		}
	}
	lent(t, d)(nobodyIsDone, long)
	done := make(chan struct{}, 1)
	go d.Subscribe(t.Context(), "channel", func() { done <- struct{}{} }, func(string) {})
	<-done
	off := s.driver(t)
	off.address.NoCallerReads = true
	for range 2 * slowCalm {
		if _, err := d.do(t.Context(), "PING"); err != nil || d.Lend() != nil || off.Lend() != nil {
			t.Fatalf("%v, or it may read though somebody listens, or it is switched off", err)
		}
		d, off = off, d
	}
}

// TestHalfAReplyThatACallerReadsIsNone has a server hang up or be silent after half of
// a reply, or be left meanwhile. The caller leaves soon, and the request fails.
func TestHalfAReplyThatACallerReadsIsNone(t *testing.T) {
	for i, half := range []string{"+hang up", "+xhang up", "", "", "+silent", "$9\r\nsilent"} {
		d := newServer(t, func(command []string) string {
			if command[len(command)-1] == "half" {
				return half
			}
			return ":1\r\n"
		}).driver(t)
		loan, start := lent(t, d), time.Now()
		outcomes := startAll(d, long, script("half"))
		if i == 2 {
			time.AfterFunc(longestRead/2, func() { d.Close() })
		}
		loan(nobodyIsDone, long)
		if i > 1 {
			d.Close()
		}
		if took := time.Since(start); took > long/2 {
			t.Errorf("%q: the caller read for %v", half, took)
		}
		if a := outcomes()[0]; a.err == nil || errors.Is(a.err, node.ErrUnsent) || i > 1 != errors.Is(a.err, node.ErrClosed) {
			t.Errorf("%q: %v", half, a)
		}
	}
}

// TestWhatWasNotAskedForIsNoReply has a server send something by itself, or hang up,
// while nobody reads. The next request is sent over another connection, whoever is to
// read its reply.
func TestWhatWasNotAskedForIsNoReply(t *testing.T) {
	s := newServer(t, func(command []string) string { return "+" + command[len(command)-1] + "\r\n" })
	for i, text := range []string{"+granted\r\n", "", "+granted\r\n", ""} {
		d := s.driver(t)
		lent(t, d)(nobodyIsDone, long)
		c, server := d.conn.Load(), s.socket.Load().(net.Conn)
		if server.Write([]byte(text)); text == "" {
			server.Close()
		}
		poll.Until(t, "it has arrived", func() bool { return unread(c.file) })
		if i < 2 && d.Lend() != nil {
			t.Fatalf("%q: a caller may read", text)
		}
		if got, err := d.do(t.Context(), "PING"); err != nil || got.Text != "PING" || d.conn.Load() == c {
			t.Errorf("%q: got %q, %v", text, got.Text, err)
		}
	}
}

// leftSocket is one that the caller leaves, so that it is replaced, before the first
// byte of a request beside it is written.
type leftSocket struct {
	io.ReadWriteCloser
	c *conn
}

func (s leftSocket) Write(b []byte) (int, error) {
	s.c.mu.Lock()
	s.c.resume()
	s.c.mu.Unlock()
	return s.ReadWriteCloser.Write(b)
}

func TestRequestBesideACallerThatLeavesIsSent(t *testing.T) {
	d := newServer(t, func(command []string) string { return "+" + command[len(command)-1] + "\r\n" }).driver(t)
	lent(t, d)
	c := d.conn.Load()
	c.socket = leftSocket{c.socket, c}
	if got := startAll(d, long, script("beside"))()[0]; got != (outcome{"beside", nil}) {
		t.Errorf("got %v", got)
	}
}
