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

func proxy(t *testing.T, target string) *servertest.Proxy {
	t.Helper()
	p, err := servertest.OpenProxy(target)
	must(t, err)
	t.Cleanup(p.Close)
	return p
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

func TestFairWeatherPassesEverything(t *testing.T) {
	address, _ := echo(t)
	c := dial(t, proxy(t, address))
	io.WriteString(c, "a")
	if got, err := hear(c, goodTime); got != "a" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLostRequestsDoNotArrive(t *testing.T) {
	address, heard := echo(t)
	p := proxy(t, address)
	p.Set(servertest.Weather{Requests: servertest.Direction{Lost: true}})
	c := dial(t, p)
	io.WriteString(c, "a")
	if got, err := hear(c, moment); !errors.Is(err, os.ErrDeadlineExceeded) || len(heard) > 0 {
		t.Errorf("%q, %v, heard %d", got, err, len(heard))
	}
	// In no network does a connection continue with a gap in it.
	p.Set(servertest.Weather{})
	if _, err := hear(c, goodTime); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection still stands: %v", err)
	}
}

func TestSwallowedRepliesAreOfRequestsThatWereHeard(t *testing.T) {
	address, heard := echo(t)
	p := proxy(t, address)
	p.SwallowReplies(true)
	c := dial(t, p)
	for _, text := range []string{"a", "b"} {
		io.WriteString(c, text)
		if got := <-heard; got != text {
			t.Errorf("heard %q", got)
		}
	}
	if got, err := hear(c, moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDelayHoldsUpAndDoesNotLose(t *testing.T) {
	address, heard := echo(t)
	p := proxy(t, address)
	p.Delay(moment)
	c := dial(t, p)
	begin := time.Now()
	io.WriteString(c, "a")
	<-heard
	if took := time.Since(begin); took < moment {
		t.Errorf("it took %v", took)
	}
}

func TestJitterHasConnectionsOvertakeEachOther(t *testing.T) {
	address, heard := echo(t)
	p := proxy(t, address)
	a, b := dial(t, p), dial(t, p)
	io.WriteString(a, "-")
	io.WriteString(b, "-")
	<-heard
	<-heard
	p.Set(servertest.Weather{Requests: servertest.Direction{Jitter: 20 * time.Millisecond}})
	for tries := 0; ; tries++ {
		io.WriteString(a, "a")
		io.WriteString(b, "b")
		if first, second := <-heard, <-heard; first == "b" && second == "a" {
			return
		}
		if tries == 100 {
			t.Fatal("they never did")
		}
	}
}

func TestResetAndCutBreakConnections(t *testing.T) {
	address, heard := echo(t)
	p := proxy(t, address)
	for name, how := range map[string]func(){"reset": p.Reset, "cut": p.Cut} {
		c := dial(t, p)
		io.WriteString(c, "a")
		<-heard
		hear(c, goodTime)
		how()
		if _, err := hear(c, goodTime); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection still stands: %v", name, err)
		}
	}
}

func TestForgottenConnectionsAreSilentAndNewOnesWork(t *testing.T) {
	address, heard := echo(t)
	p := proxy(t, address)
	c := dial(t, p)
	io.WriteString(c, "a")
	<-heard
	hear(c, goodTime)
	p.Forget()
	io.WriteString(c, "b")
	if got, err := hear(c, moment); !errors.Is(err, os.ErrDeadlineExceeded) || len(heard) > 0 {
		t.Errorf("%q, %v, heard %d", got, err, len(heard))
	}
	fresh := dial(t, p)
	io.WriteString(fresh, "c")
	if got, err := hear(fresh, goodTime); got != "c" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNewConnectionsAreLedToAnotherServer(t *testing.T) {
	first, _ := echo(t)
	second, heard := echo(t)
	p := proxy(t, first)
	p.LeadTo(second)
	io.WriteString(dial(t, p), "a")
	if got := <-heard; got != "a" {
		t.Errorf("the other server heard %q", got)
	}
}
