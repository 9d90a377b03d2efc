//go:build unix

package redistest

import (
	"bytes"
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
	lose    bool
	cutAt   []byte
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

// NewProxies returns a proxy to each server, and their addresses.
func NewProxies(t testing.TB, servers []*Server) (proxies []*Proxy, urls []string) {
	t.Helper()
	for _, s := range servers {
		p := NewProxy(t, s)
		proxies, urls = append(proxies, p), append(urls, p.URL())
	}
	return proxies, urls
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

// LoseRequests sets whether what a client says is lost on the way.
func (p *Proxy) LoseRequests(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = on
}

// Partition sets whether all is lost on the way, in both directions. New
// connections are made, and nobody answers on them.
func (p *Proxy) Partition(on bool) {
	p.LoseRequests(on)
	p.SwallowReplies(on)
}

// CutAt breaks the next connection on which the server says the text, which
// does not arrive. Empty stands for none.
func (p *Proxy) CutAt(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAt = []byte(text)
}

// HasCut reports whether the text that CutAt waits for has come.
func (p *Proxy) HasCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.cutAt) == 0
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
		go p.copy(server, client, func([]byte) (time.Duration, bool, bool) { return p.out, p.lose, false })
		go p.copy(client, server, func(data []byte) (time.Duration, bool, bool) {
			cut := len(p.cutAt) > 0 && bytes.Contains(data, p.cutAt)
			if cut {
				p.cutAt = nil
			}
			return 0, p.swallow, cut
		})
	}
}

// parcel is a piece of a connection's traffic and when it is to arrive.
type parcel struct {
	data []byte
	at   time.Time
}

// copy carries one direction of a connection. A delay holds up each parcel by
// as much, and does not hold up those behind it the more.
func (p *Proxy) copy(to, from net.Conn, weather func(data []byte) (delay time.Duration, lost, cut bool)) {
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
		delay, lost, cut := weather(buf[:n])
		p.mu.Unlock()
		if cut {
			return
		}
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
