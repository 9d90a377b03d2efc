package servertest_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

var must = check.Must

// echo is a server that sends back what it receives, and passes it to the test
// too.
func echo(t *testing.T) (address string, heard <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	told := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 1)
				for {
					if _, err := c.Read(buf); err != nil {
						return
					}
					told <- string(buf)
					c.Write(buf)
				}
			}()
		}
	}()
	return l.Addr().String(), told
}

// line is a connection to an echo over a proxy, on which a byte came and went.
func line(t *testing.T) (p *servertest.Proxy, c net.Conn, heard <-chan string) {
	t.Helper()
	address, heard := echo(t)
	p, err := servertest.OpenProxy(address)
	must(t, err)
	t.Cleanup(p.Close)
	c = dial(t, p)
	io.WriteString(c, "-")
	<-heard
	if got, err := hear(c, goodTime); got != "-" {
		t.Fatalf("%q, %v", got, err)
	}
	return p, c, heard
}

func dial(t *testing.T, p *servertest.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// hear reads one byte within the limit.
func hear(c net.Conn, limit time.Duration) (string, error) {
	c.SetReadDeadline(time.Now().Add(limit))
	buf := make([]byte, 1)
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

const (
	moment   = 100 * time.Millisecond
	goodTime = 10 * time.Second
)

// wantSilence fails if anything is heard, or if the connection breaks.
func wantSilence(t *testing.T, c net.Conn) {
	t.Helper()
	if got, err := hear(c, moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", got, err)
	}
}

// wantBroken fails if the connection still stands.
func wantBroken(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := hear(c, goodTime); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection still stands: %v", err)
	}
}

// TestWeatherIsWhatItIsSetTo: what is lost does not arrive, or is not answered; what
// is late is not lost; a connection with a gap in it does not continue.
func TestWeatherIsWhatItIsSetTo(t *testing.T) {
	p, c, heard := line(t)
	p.Delay(moment)
	begin := time.Now()
	io.WriteString(c, "a")
	<-heard
	if took := time.Since(begin); took < moment {
		t.Errorf("it took %v", took)
	}
	hear(c, goodTime)
	p.SwallowReplies(true)
	for _, text := range []string{"a", "b"} {
		io.WriteString(c, text)
		if got := <-heard; got != text {
			t.Errorf("heard %q", got)
		}
	}
	wantSilence(t, c)
	p.Set(servertest.Weather{})
	wantBroken(t, c)
	c = dial(t, p)
	p.LoseRequests(true)
	io.WriteString(c, "a")
	if wantSilence(t, c); len(heard) > 0 {
		t.Errorf("heard %d", len(heard))
	}
}

func TestJitterHasConnectionsOvertakeEachOther(t *testing.T) {
	p, a, heard := line(t)
	b := dial(t, p)
	io.WriteString(b, "-")
	<-heard
	p.Set(servertest.Weather{Requests: servertest.Direction{Jitter: 20 * time.Millisecond}})
	for range 100 {
		io.WriteString(a, "a")
		io.WriteString(b, "b")
		if first, second := <-heard, <-heard; first == "b" && second == "a" {
			return
		}
	}
	t.Error("they never did")
}

func TestResetAndCutBreakConnections(t *testing.T) {
	for _, how := range []func(*servertest.Proxy){(*servertest.Proxy).Reset, (*servertest.Proxy).Cut} {
		p, c, _ := line(t)
		how(p)
		wantBroken(t, c)
	}
}

func TestForgottenConnectionsAreSilentAndNewOnesWork(t *testing.T) {
	p, c, heard := line(t)
	p.Forget()
	io.WriteString(c, "b")
	if wantSilence(t, c); len(heard) > 0 {
		t.Errorf("heard %d", len(heard))
	}
	fresh := dial(t, p)
	io.WriteString(fresh, "c")
	if got, err := hear(fresh, goodTime); got != "c" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNewConnectionsAreLedToAnotherServer(t *testing.T) {
	p, _, _ := line(t)
	second, heard := echo(t)
	p.LeadTo(second)
	io.WriteString(dial(t, p), "a")
	if got := <-heard; got != "a" {
		t.Errorf("the other server heard %q", got)
	}
}
