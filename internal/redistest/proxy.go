//go:build unix

package redistest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and a server, and does to their connections
// what a network can do.
type Proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	conns   map[net.Conn]bool
	out     time.Duration
	swallow bool
}

// NewProxy returns a proxy to a server, ended with the test.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: s.Addr(), conns: map[net.Conn]bool{}}
	go p.accept()
	t.Cleanup(func() {
		l.Close()
		p.Cut()
	})
	return p
}

// URL returns the redis:// address of the proxy.
func (p *Proxy) URL() string { return "redis://" + p.listener.Addr().String() }

// Delay holds every request up for d from now on.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = d
}

// SwallowReplies sets whether what the server says is lost on the way.
func (p *Proxy) SwallowReplies(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = on
}

// Target sends new connections to another server.
func (p *Proxy) Target(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = s.Addr()
}

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		go p.copy(server, client, func() (time.Duration, bool) { return p.out, false })
		go p.copy(client, server, func() (time.Duration, bool) { return 0, p.swallow })
	}
}

// parcel is a piece of a connection's traffic and when it is to arrive.
type parcel struct {
	data []byte
	at   time.Time
}

// copy carries one direction of a connection. A delay holds up each parcel by
// as much, and does not hold up those behind it the more.
func (p *Proxy) copy(to, from net.Conn, weather func() (delay time.Duration, lost bool)) {
	onTheWay := make(chan parcel, 10_000)
	go func() {
		defer to.Close()
		defer from.Close()
		for x := range onTheWay {
			time.Sleep(time.Until(x.at))
			if _, err := to.Write(x.data); err != nil {
				return
			}
		}
	}()
	defer close(onTheWay)
	for {
		buf := make([]byte, 16<<10)
		n, err := from.Read(buf)
		p.mu.Lock()
		delay, lost := weather()
		p.mu.Unlock()
		if n > 0 && !lost {
			select {
			case onTheWay <- parcel{buf[:n], time.Now().Add(delay)}:
			default:
				return // nobody takes anything any more
			}
		}
		if err != nil {
			return
		}
	}
}
