package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/process"
)

// Network is links between contenders and servers: every connection goes through
// a process of its own, which passes on what is sent after a delay.
type Network struct {
	// Delay is how long it takes to a server and back, each way half of it; 0
	// for no links. Last is another delay for the last server, if it is set.
	Delay, Last time.Duration
	// LoseEvery is how often a link is lost for LoseFor, one after the other; 0
	// for never. What is sent meanwhile arrives after that, as TCP has it.
	LoseEvery, LoseFor time.Duration
	Servers            []string // set by link
}

// LinkArgument has the program run links, in place of what it does otherwise.
const LinkArgument = "run-links"

// linked is servers behind links.
type linked struct {
	*Redis
	process *process.Process
	links   []string
}

// link starts links to the servers, in a process of their own.
func link(r *Redis, n Network) (Backend, error) {
	l := &linked{Redis: r}
	n.Servers = r.Addresses()
	self, err := os.Executable()
	if err == nil {
		l.process, err = process.Start(exec.Command(self, LinkArgument), n, &l.links)
	}
	if err != nil {
		r.Stop()
		return nil, fmt.Errorf("links: %w", err)
	}
	return l, nil
}

// Addresses returns host:port of each link.
func (l *linked) Addresses() []string { return l.links }

// Stop ends the links, and the servers.
func (l *linked) Stop() {
	l.process.Stop()
	l.Redis.Stop()
}

// RunLinks starts the links that it reads a Network of, writes their addresses,
// and runs them until there is nothing more to read.
func RunLinks(in io.Reader, out io.Writer) error {
	// A goroutine that sleeps keeps a processor of Go's for a while.
	runtime.GOMAXPROCS(64)
	var n Network
	if err := json.NewDecoder(in).Decode(&n); err != nil {
		return err
	}
	var ways []*way
	var addresses []string
	for i, server := range n.Servers {
		delay := n.Delay
		if i == len(n.Servers)-1 && n.Last > 0 {
			delay = n.Last
		}
		w := &way{server: server, delay: delay / 2}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		ways, addresses = append(ways, w), append(addresses, l.Addr().String())
		go w.accept(l)
	}
	if n.LoseEvery > 0 {
		go func() {
			for i := 0; ; i++ {
				time.Sleep(n.LoseEvery)
				ways[i%len(ways)].lost.Store(clock.Now() + int64(n.LoseFor))
				time.Sleep(n.LoseFor)
			}
		}()
	}
	if err := json.NewEncoder(out).Encode(addresses); err != nil {
		return err
	}
	io.Copy(io.Discard, in)
	return nil
}

// way is the link to a server.
type way struct {
	server string
	delay  time.Duration
	lost   atomic.Int64 // until when nothing is delivered
}

func (w *way) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			server, err := net.Dial("tcp", w.server)
			if err != nil {
				client.Close()
				return
			}
			go w.carry(client, server)
			w.carry(server, client)
		}()
	}
}

// part is what was sent, and when it is to arrive.
type part struct {
	due  int64
	data []byte
}

// carry passes on what one end sends.
func (w *way) carry(from, to net.Conn) {
	parts := make(chan part, 1<<12)
	defer close(parts)
	go func() {
		defer to.Close()
		for p := range parts {
			w.await(p.due)
			to.Write(p.data)
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			parts <- part{clock.Now() + int64(w.delay), append([]byte(nil), buffer[:n]...)}
		}
		if err != nil {
			return
		}
	}
}

// await waits until a moment, or until the link is not lost any more. It is exact
// to some ten microseconds, where a timer of Go's would be a millisecond late.
func (w *way) await(due int64) {
	for d := time.Duration(1); d > 0; {
		if d = clock.Until(max(due, w.lost.Load())); d > 0 {
			ts := syscall.NsecToTimespec(int64(d))
			syscall.Nanosleep(&ts, nil)
		}
	}
}
