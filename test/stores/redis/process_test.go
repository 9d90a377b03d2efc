//go:build unix

package redis_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/observe"
)

// A contender is a process that wants a lock once: the test binary, started
// again. It reports what happens to it on its standard output, each line an
// event and its moment, and reads orders from its standard input.
type contender struct {
	*processes.Process
	t testing.TB
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

// TestMain turns the test binary into a contender when a test says so.
func TestMain(m *testing.M) {
	processes.Main(m, func() {
		if err := contend(os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
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
	text, err := json.Marshal(o)
	must(t, err)
	return &contender{processes.Start(t, "contender", []string{"GOMAXPROCS=2"}, string(text)), t}
}

// at returns when something happened, and whether it did.
func (p *contender) at(event string) (at time.Duration, did bool) {
	for line := range strings.Lines(p.Said()) {
		if n, _ := fmt.Sscanf(line, event+" %d", &at); n == 1 {
			return at, true
		}
	}
	return 0, false
}

// await waits until something happens, and returns when it did. Events are
// awaited in their order.
func (p *contender) await(event string) time.Duration {
	p.t.Helper()
	line := p.Line(event + " ")
	at, did := p.at(event)
	if !did {
		p.t.Fatalf("not %s, but: %s", event, line)
	}
	return at
}

// ask has the contender ask for the lock and hold it for so long, or until an
// order to release it if the time is negative. It returns once the contender
// has its ticket.
func (p *contender) ask(hold time.Duration) {
	p.t.Helper()
	p.Type(hold.String())
	p.await(arrived)
}

// release orders a contender to release its lock.
func (p *contender) release() {
	p.t.Helper()
	p.Type("")
}
