//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		c.shim, err = clockshim.Build(dir)
		check.Must(t, err)
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

// is fails unless something is so.
func (b *bench) is(is bool, format string, args ...any) {
	b.Helper()
	if !is {
		b.Errorf(format, args...)
	}
}

// says gives the server commands, by the client's way or not, and compares what they
// return: a reply, an error, or nothing for a while. SHA is the script return(1).
func (b *bench) says(text string) {
	b.Helper()
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "SHA", "930269f31393d0be681588b6ab08dccee7d6bb67"), "; ") {
		command, want, _ := strings.Cut(line, " = ")
		var got string
		var err error
		switch way, byWay := strings.CutPrefix(command, "way "); {
		case command == "":
		case command == "LOCK":
			b.lock()
		case command == "CONNECT":
			b.connect()
		case byWay && want == "timeout":
			got, err = b.over(300*time.Millisecond, strings.Fields(way)...)
		case byWay:
			got, err = b.over(time.Minute, strings.Fields(way)...)
		default:
			got, err = b.n.at().Ask(strings.Fields(command)...)
		}
		switch {
		case timesOut(err):
			got = "timeout"
		case err != nil:
			got = "error " + err.Error()
		}
		b.is(strings.HasPrefix(got, want) && (err == nil || want != ""), "%.99s: %s, want %s", command, got, want)
	}
}

// connect has the client have a connection.
func (b *bench) connect() {
	var err error
	b.conn, err = net.Dial("tcp", b.n.links[0].Addr())
	check.Must(b, err)
	b.Cleanup(func() { b.conn.Close() })
	io.WriteString(b.conn, "PING\r\n")
	io.ReadFull(b.conn, make([]byte, len("+PONG\r\n")))
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
