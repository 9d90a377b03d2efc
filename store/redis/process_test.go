//go:build unix

package redis_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
)

// A contender is a process that wants a lock once: the test binary, started
// again. It reports what happens to it on its standard output, each line an
// event and its moment, and reads orders from its standard input.
type contender struct {
	t      testing.TB
	cmd    *exec.Cmd
	orders io.WriteCloser

	mu     sync.Mutex
	events map[string]time.Duration
	text   strings.Builder // its other output
	news   chan struct{}   // closed and replaced with every event
	ended  chan struct{}
}

// The events of a contender, in their order. A moment between arriving and
// arrived is its ticket; the lock is held at least from acquired to releasing.
const (
	ready     = "ready"
	arriving  = "arriving"
	arrived   = "arrived"
	acquired  = "acquired"
	validTill = "valid-till" // the lease's deadline as it was acquired
	releasing = "releasing"
	released  = "released"
)

// orders are the parameters that a contender is started with.
type orders struct {
	Driver, Name string
	Addresses    []string
	TTL          time.Duration
}

const ordersVariable = "REDLATCH_TEST_CONTENDER"

// TestMain turns the test binary into a contender when a test says so.
func TestMain(m *testing.M) {
	text := os.Getenv(ordersVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := contend(text); err != nil {
		fmt.Println("error", 0, err)
		os.Exit(1)
	}
}

// monotonic reads the clock that all processes of a machine share and that
// cannot be set.
func monotonic() time.Duration {
	var ts sys.Timespec
	if err := sys.ClockGettime(sys.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

func tell(event string, at time.Duration) { fmt.Println(event, int64(at)) }

// announcer reports when a contender has its ticket.
type announcer struct{}

func (announcer) LockStart(ctx context.Context, _ observe.LockStart) context.Context {
	tell(arrived, monotonic())
	return ctx
}

func (announcer) LockEnd(context.Context, observe.LockEnd) {}

// contend is the life of a contender.
func contend(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	nodes, err := drivers[o.Driver](o.Addresses...)
	if err != nil {
		return err
	}
	c, err := redlatch.New(nodes, &redlatch.Options{
		AssumeFresh: true, NodeTimeout: 3 * time.Second, Observer: announcer{},
	})
	if err != nil {
		return err
	}
	defer c.Close()
	lines := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
		os.Exit(2) // the test that started us is gone
	}()
	tell(ready, monotonic())
	hold, err := time.ParseDuration(<-lines)
	if err != nil {
		return err
	}
	tell(arriving, monotonic())
	l, err := c.Lock(context.Background(), o.Name, &redlatch.LockOptions{TTL: o.TTL, Wait: 10 * time.Minute})
	if err != nil {
		return err
	}
	at := monotonic()
	tell(validTill, at+l.Remaining())
	tell(acquired, at)
	if hold >= 0 {
		time.Sleep(hold)
	} else {
		<-lines
	}
	if l.Err() != nil {
		return l.Err()
	}
	tell(releasing, monotonic())
	err = l.Release(context.Background())
	tell(released, monotonic())
	return err
}

// startContender starts a contender, which waits for its first order, and ends
// it with the test.
func startContender(t testing.TB, o orders) *contender {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	text, err := json.Marshal(o)
	must(t, err)
	p := &contender{t: t, cmd: exec.Command(self), events: map[string]time.Duration{},
		news: make(chan struct{}), ended: make(chan struct{})}
	// The race detector would make every process sleep for a second before it
	// ends.
	p.cmd.Env = append(os.Environ(), ordersVariable+"="+string(text), "GORACE=atexit_sleep_ms=0", "GOMAXPROCS=2")
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	var trouble strings.Builder
	p.cmd.Stderr = &trouble
	must(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		for in := bufio.NewScanner(out); in.Scan(); {
			p.note(in.Text())
		}
		if err := p.cmd.Wait(); err != nil {
			p.note(fmt.Sprint("ended 0 ", err, " ", trouble.String()))
		}
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.ended
	})
	return p
}

// note records the output of the process.
func (p *contender) note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var event string
	var at int64
	if n, _ := fmt.Sscan(line, &event, &at); n < 2 || at == 0 {
		p.text.WriteString(line + "\n")
	} else {
		p.events[event] = time.Duration(at)
	}
	close(p.news)
	p.news = make(chan struct{})
}

// at returns when something happened, and whether it did.
func (p *contender) at(event string) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.events[event]
	return at, ok
}

// await waits until something happens, and returns when it did.
func (p *contender) await(event string, within time.Duration) time.Duration {
	p.t.Helper()
	late := time.After(within)
	for {
		p.mu.Lock()
		at, ok := p.events[event]
		news, said := p.news, p.text.String()
		p.mu.Unlock()
		if ok {
			return at
		}
		select {
		case <-news:
		case <-p.ended:
			if _, ok := p.at(event); !ok {
				p.t.Fatalf("the process ended before %s: %s", event, said)
			}
		case <-late:
			p.t.Fatalf("not %s within %v: %s", event, within, said)
		}
	}
}

// ask has the contender ask for the lock and hold it for so long, or until an
// order to release it if the time is negative. It returns once the contender
// has its ticket.
func (p *contender) ask(hold time.Duration) {
	p.t.Helper()
	fmt.Fprintln(p.orders, hold)
	p.await(arrived, patience)
}

// release orders a contender to release its lock.
func (p *contender) release() { fmt.Fprintln(p.orders) }

// signal sends the process a signal, and returns when that was.
func (p *contender) signal(sig syscall.Signal) time.Duration {
	p.t.Helper()
	at := monotonic()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	return at
}
