package server

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/process"
)

// Network is links between contenders and servers: every connection goes through
// a process of its own, which passes on what is sent after a delay.
type Network struct {
	// Delay is how long it takes to a server and back, each way half of it; 0
	// for no links. Last is another delay for the last server, if it is set.
	Delay, Last time.Duration
	Servers     []string // set by link
}

// LinkArgument makes the program run links, and nothing else.
const LinkArgument = "run-links"

// link puts links before the servers, in a process of their own.
func (r *Redis) link(n Network) (err error) {
	n.Servers = r.Addresses()
	self, err := os.Executable()
	if err == nil {
		r.links, err = process.Start(exec.Command(self, LinkArgument), n, &r.addresses)
	}
	return err
}

// RunLinks starts the links that it reads a Network of, writes their addresses,
// and runs them until there is nothing more to read.
func RunLinks(in io.Reader, out io.Writer) error {
	// A goroutine that sleeps keeps a processor of Go's for a while.
	runtime.GOMAXPROCS(64)
	servertest.Sleep = exactly
	var n Network
	if err := json.NewDecoder(in).Decode(&n); err != nil {
		return err
	}
	var addresses []string
	for i, server := range n.Servers {
		p, err := servertest.OpenProxy(server)
		if err != nil {
			return err
		}
		way := servertest.Direction{Delay: n.Delay / 2}
		if i == len(n.Servers)-1 && n.Last > 0 {
			way.Delay = n.Last / 2
		}
		p.Set(servertest.Weather{Requests: way, Replies: way})
		addresses = append(addresses, p.Addr())
	}
	if err := json.NewEncoder(out).Encode(addresses); err != nil {
		return err
	}
	io.Copy(io.Discard, in)
	return nil
}

// exactly sleeps, and wakes some ten microseconds late, where a timer of Go's would
// be a millisecond late.
func exactly(d time.Duration) {
	for until := clock.Now() + int64(d); d > 0; d = clock.Until(until) {
		ts := syscall.NsecToTimespec(int64(d))
		syscall.Nanosleep(&ts, nil)
	}
}
