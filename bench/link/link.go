// Package link is a network between contenders and servers: every connection
// goes through a process of its own, which passes on what is sent after a delay.
package link

import (
	"encoding/json"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Argument has the program run links, in place of what it does otherwise.
const Argument = "run-links"

// Config is a network.
type Config struct {
	// Servers are their addresses, and Delays how long it takes to each of them
	// and back again, each way half of it.
	Servers []string
	Delays  []time.Duration
	// LoseEvery is how often a link is lost for LoseFor, one after the other; 0
	// for never. What is sent meanwhile arrives after that, as TCP has it.
	LoseEvery, LoseFor time.Duration
}

// Run starts the links that it reads a Config of, writes their addresses, and
// runs them until there is nothing more to read.
func Run(in io.Reader, out io.Writer) error {
	// Those who sleep keep a processor of Go's each.
	runtime.GOMAXPROCS(16)
	d := json.NewDecoder(in)
	var config Config
	if err := d.Decode(&config); err != nil {
		return err
	}
	lanes := map[time.Duration]lane{}
	var links []*link
	var addresses []string
	for i, server := range config.Servers {
		delay := config.Delays[i] / 2
		if lanes[delay] == nil {
			lanes[delay] = newLane()
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		k := &link{server: server, delay: delay, lane: lanes[delay]}
		links, addresses = append(links, k), append(addresses, l.Addr().String())
		go k.accept(l)
	}
	if config.LoseEvery > 0 {
		go lose(links, config)
	}
	if err := json.NewEncoder(out).Encode(addresses); err != nil {
		return err
	}
	io.Copy(io.Discard, in)
	return nil
}

// lose loses one link after the other.
func lose(links []*link, c Config) {
	for i := 0; ; i++ {
		time.Sleep(c.LoseEvery)
		links[i%len(links)].lose(c.LoseFor)
	}
}

// part is what was sent.
type part struct {
	due  time.Time
	link *link
	to   net.Conn
	data []byte
}

// lane delivers the parts of all links with one delay, in order.
type lane chan part

func newLane() lane {
	l := make(lane, 1<<14)
	go func() {
		runtime.LockOSThread()
		for p := range l {
			sleepUntil(p.due)
			p.link.deliver(p)
		}
	}()
	return l
}

// sleepUntil is exact to some ten microseconds, where a timer of Go's would be a
// millisecond late.
func sleepUntil(t time.Time) {
	if d := time.Until(t); d > 0 {
		ts := syscall.NsecToTimespec(int64(d))
		syscall.Nanosleep(&ts, nil)
	}
}

// link is the way to a server.
type link struct {
	server string
	delay  time.Duration // each way
	lane   lane

	mu   sync.Mutex
	lost bool
	held []part // what was sent while it was lost
}

func (k *link) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			server, err := net.Dial("tcp", k.server)
			if err != nil {
				client.Close()
				return
			}
			go k.carry(client, server)
			k.carry(server, client)
		}()
	}
}

// carry passes on what one end sends.
func (k *link) carry(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			k.lane <- part{time.Now().Add(k.delay), k, to, append([]byte(nil), buffer[:n]...)}
		}
		if err != nil {
			k.lane <- part{time.Now().Add(k.delay), k, to, nil}
			return
		}
	}
}

func (k *link) deliver(p part) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost {
		k.held = append(k.held, p)
		return
	}
	p.write()
}

func (p part) write() {
	if p.data == nil {
		p.to.Close()
		return
	}
	p.to.Write(p.data)
}

func (k *link) lose(d time.Duration) {
	k.mu.Lock()
	k.lost = true
	k.mu.Unlock()
	time.Sleep(d)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lost = false
	for _, p := range k.held {
		p.write()
	}
	k.held = nil
}
