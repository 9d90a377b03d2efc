package server

import (
	"runtime"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/test/bench/clock"
)

// Network is links between contenders and servers: every connection goes through this
// process, which passes on what is sent after a delay. Contenders are other processes.
type Network struct {
	// Delay is how long it takes to a server and back, each way half of it; 0
	// for no links. Last is another delay for the last server, if it is set.
	Delay, Last time.Duration
}

func init() { servertest.Sleep = exactly }

// link puts links before the servers.
func (b *Backend) link(n Network) error {
	// A goroutine that sleeps keeps a processor of Go's for a while.
	procs, stop := runtime.GOMAXPROCS(64), b.Stop
	var links []*servertest.Proxy
	b.Stop = func() {
		for _, p := range links {
			p.Close()
		}
		runtime.GOMAXPROCS(procs)
		stop()
	}
	for i, server := range b.Addresses {
		p, err := servertest.OpenProxy(server)
		if err != nil {
			return err
		}
		links = append(links, p)
		way := servertest.Direction{Delay: n.Delay / 2}
		if i == len(b.Addresses)-1 && n.Last > 0 {
			way.Delay = n.Last / 2
		}
		p.Set(servertest.Weather{Requests: way, Replies: way})
	}
	b.Addresses = servertest.Hosts(links)
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
