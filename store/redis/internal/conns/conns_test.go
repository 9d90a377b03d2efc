package conns_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/store/redis/internal/conns"
)

// echo returns the address of a server that sends back every byte but zeros.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for buf := make([]byte, 1); ; {
					if _, err := c.Read(buf); err != nil {
						return
					}
					if buf[0] != 0 {
						c.Write(buf)
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, g *conns.Group, address string) net.Conn {
	t.Helper()
	c, err := g.Dial(context.Background(), "tcp", address, nil)
	check.Must(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(10 * time.Second)) // no test waits for ever
	return c
}

// ask has the server answer.
func ask(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := c.Write([]byte{1})
	check.Must(t, err)
	_, err = io.ReadFull(c, make([]byte, 1))
	check.Must(t, err)
}

// unanswered reports a request that began at start, and has had no answer.
func unanswered(g *conns.Group, start time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), time.Now())
	defer cancel()
	g.Returned(ctx, start, context.DeadlineExceeded)
}

// awaitClose waits until a connection was closed by the group.
func awaitClose(t *testing.T, c net.Conn) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); c.SetWriteDeadline(time.Time{}) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the connection was not given up")
		}
	}
}

func TestOneRequestWithoutAnAnswerGivesUpAllThatAreSilentSince(t *testing.T) {
	var g conns.Group
	address := echo(t)
	asked, idle, alive := dial(t, &g, address), dial(t, &g, address), dial(t, &g, address)
	for _, c := range []net.Conn{asked, idle, alive} {
		ask(t, c)
	}
	start := time.Now()
	time.Sleep(10 * time.Millisecond)
	asked.Write([]byte{0})
	unanswered(&g, start)
	ask(t, alive)
	fresh := dial(t, &g, address)
	// A request that waits for an answer gets a timeout. A new request gets an
	// error that says that nothing was sent.
	var timeout net.Error
	if _, err := asked.Read(make([]byte, 1)); !errors.Is(err, conns.ErrSilent) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("the one that was asked: %v", err)
	}
	if _, err := asked.Write([]byte{1}); !errors.Is(err, conns.ErrSilent) {
		t.Errorf("the one that was asked, written to: %v", err)
	}
	awaitClose(t, idle)
	if _, err := idle.Write([]byte{1}); !errors.Is(err, conns.ErrUnused) {
		t.Errorf("the idle one: %v", err)
	}
	if err := idle.SetDeadline(time.Now().Add(time.Second)); !errors.Is(err, conns.ErrUnused) {
		t.Errorf("the idle one, with a time limit: %v", err)
	}
	ask(t, alive)
	ask(t, fresh)
}

// TestRequestThatWasJustSentIsNotGivenUp: the connection was idle when another
// request had no answer, so nothing has arrived on it since.
func TestRequestThatWasJustSentIsNotGivenUp(t *testing.T) {
	var g conns.Group
	address := echo(t)
	c, idle := dial(t, &g, address), dial(t, &g, address)
	start := time.Now()
	time.Sleep(20 * time.Millisecond)
	unanswered(&g, start)
	c.Write([]byte{0})
	awaitClose(t, idle)
	ask(t, c)
}

func TestAnswerThatComesLateKeepsTheConnection(t *testing.T) {
	var g conns.Group
	c := dial(t, &g, echo(t))
	start := time.Now()
	time.Sleep(20 * time.Millisecond)
	unanswered(&g, start)
	ask(t, c)
	time.Sleep(50 * time.Millisecond) // what must not happen shows in time alone
	ask(t, c)
}

func TestRequestThatFailsBeforeItsDeadlineGivesNothingUp(t *testing.T) {
	var g conns.Group
	c := dial(t, &g, echo(t))
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	g.Returned(ctx, time.Now(), errors.New("refused"))
	time.Sleep(50 * time.Millisecond) // what must not happen shows in time alone
	ask(t, c)
}

// TestTooManyConnectionsAreClosedWithoutLosingARequest: the first one has a request
// that takes long, so the second, which was used later, makes room.
func TestTooManyConnectionsAreClosedWithoutLosingARequest(t *testing.T) {
	g := conns.Group{Most: 2}
	address := echo(t)
	asked := dial(t, &g, address)
	asked.Write([]byte{0})
	idle, third := dial(t, &g, address), dial(t, &g, address)
	ask(t, third)
	fourth := dial(t, &g, address)
	ask(t, fourth)
	awaitClose(t, idle)
	for _, c := range []net.Conn{asked, third, fourth} {
		ask(t, c)
	}
}
