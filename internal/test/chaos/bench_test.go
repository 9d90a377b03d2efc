//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/clockshim"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// bench is one node with one client, to be struck.
type bench struct {
	*testing.T
	w *nemesis
	n *node

	conn net.Conn // one that the client has
}

func newBench(t *testing.T, family Family, kind ServerKind) *bench {
	t.Helper()
	program := servertest.Need(t)
	dir, err := os.MkdirTemp("", "rlt") // short, for a socket's path is bounded
	check.Must(t, err)
	c := &cluster{dir: dir, program: program}
	t.Cleanup(func() {
		c.stop()
		os.RemoveAll(dir)
	})
	if family.clock {
		if c.shim, err = clockshim.Build(dir); err != nil {
			t.Fatal(err)
		}
	}
	check.Must(t, c.start([]ServerKind{kind}, 1))
	if !slices.Contains(ensembles, kind) { // their stores are not here
		check.Must(t, c.declare(context.Background(), standardBounds))
	}
	sleeper, err := exec.LookPath("sleep")
	check.Must(t, err)
	m := &member{number: 1, path: sleeper, args: []string{"sleep", "600"}, hear: func(Event) {}}
	check.Must(t, m.start())
	t.Cleanup(m.kill)
	w := &nemesis{in: c, nodes: c.nodes, members: []*member{m}, bounds: standardBounds, holders: func() map[int]bool { return nil }, allowed: 1}
	return &bench{T: t, w: w, n: c.nodes[0]}
}

// ask asks the server, whatever its network is like.
func (b *bench) ask(args ...string) string {
	b.Helper()
	reply, err := b.n.at().Ask(args...)
	if err != nil {
		b.Fatalf("%q: %v", args, err)
	}
	return reply
}

// over asks the server by the client's way.
func (b *bench) over(limit time.Duration, args ...string) (string, error) {
	return resp.Ask("tcp", b.n.links[0].Addr(), limit, args...)
}

// timesOut reports whether nothing is answered for a while.
func timesOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

const awhile = 300 * time.Millisecond

func (b *bench) has(key string) {
	b.Helper()
	if b.ask("EXISTS", key) != "1" {
		b.Errorf("%s is not there", key)
	}
}

func (b *bench) lacks(key string) {
	b.Helper()
	if b.ask("EXISTS", key) != "0" {
		b.Errorf("%s is there", key)
	}
}

func (b *bench) answers() {
	b.Helper()
	if reply, err := b.over(time.Minute, "PING"); reply != "PONG" {
		b.Errorf("it does not answer: %q, %v", reply, err)
	}
}

// lock takes a lock, which outlives its client.
func (b *bench) lock() {
	b.Helper()
	check.Must(b, b.w.operate(func(ctx context.Context, locks *redlatch.Client) error {
		lease, err := locks.TryLock(ctx, "job", &redlatch.LockOptions{NoKeepAlive: true})
		if err != nil {
			return err
		}
		_, err = lease.Detach()
		return err
	}))
}

// wantOff fails if the clock of the server is not as it is to be.
func (b *bench) wantOff(is bool, f *Fault) {
	b.Helper()
	if !is {
		b.Errorf("the clock is off by %v, and %d breaks are noted", b.n.clock.Off(), len(f.Breaks))
	}
}

// state waits until the client's process is in a state, as ps calls it.
func (b *bench) state(want string) {
	b.Helper()
	poll.Until(b, "the client is in state "+want, func() bool {
		out, _ := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(b.w.members[0].cmd.Process.Pid)).Output()
		return strings.HasPrefix(string(out), want)
	})
}

// does applies a fault, or heals it.
func (b *bench) does(f func(*Fault) error) {
	b.Helper()
	check.Must(b, f(&Fault{}))
}
