package servertest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Direction is what happens to the traffic in one direction.
type Direction struct {
	Delay  time.Duration // every parcel is delayed by as much
	Jitter time.Duration // and by up to as much again, at random
	Lost   bool          // nothing arrives
}

// Weather is what happens to the traffic of a proxy. The zero value is fair.
type Weather struct {
	Requests, Replies Direction
}

// Proxy is between clients and a server.
type Proxy struct {
	listener net.Listener

	mu      sync.Mutex
	target  string
	pairs   map[*pair]bool
	weather Weather
	closed  bool
}

// pair is a client's connection and the one to the server that belongs to it.
type pair struct {
	client, server net.Conn
	ctx            context.Context // ends when they are closed
	end            context.CancelFunc
	holed          bool // bytes of it were lost
	forgotten      bool // nothing arrives any more, and neither end is notified
}

// parcel is a piece of a connection's traffic and when it is to arrive.
type parcel struct {
	data []byte
	at   time.Time
}

// Sleep is what delays parcels. Who needs a more exact one sets it before the first
// proxy is opened.
var Sleep = time.Sleep

// mostParcels is how many may be in flight in one direction of a connection. Then
// its sender has to wait.
const mostParcels = 256

func (p *pair) close() {
	p.end()
	p.client.Close()
	p.server.Close()
}

// OpenProxy returns a proxy on a free loopback port that leads to target, host:port.
func OpenProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, pairs: map[*pair]bool{}}
	go p.accept()
	return p, nil
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Cut()
}

// Addr returns host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL returns the redis:// address of the proxy.
func (p *Proxy) URL() string { return "redis://" + p.Addr() }

// Set changes the weather. A connection that lost bytes is broken when nothing
// is lost any longer: in no network does a connection continue with a gap in
// it.
func (p *Proxy) Set(w Weather) { p.change(func(now *Weather) { *now = w }) }

func (p *Proxy) change(to func(w *Weather)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to(&p.weather)
	if p.weather.Requests.Lost || p.weather.Replies.Lost {
		return
	}
	for c := range p.pairs {
		if c.holed {
			c.close()
			delete(p.pairs, c)
		}
	}
}

// Delay delays every request by d from now on.
func (p *Proxy) Delay(d time.Duration) { p.change(func(w *Weather) { w.Requests.Delay = d }) }

// SwallowReplies sets whether the server's replies are lost.
func (p *Proxy) SwallowReplies(on bool) { p.change(func(w *Weather) { w.Replies.Lost = on }) }

// LoseRequests sets whether the clients' requests are lost.
func (p *Proxy) LoseRequests(on bool) { p.change(func(w *Weather) { w.Requests.Lost = on }) }

// Partition sets whether everything is lost, in both directions. New
// connections are accepted, and nothing answers on them.
func (p *Proxy) Partition(on bool) {
	p.change(func(w *Weather) { w.Requests.Lost, w.Replies.Lost = on, on })
}

// Forget makes the existing connections silent for good, as when a firewall or
// a NAT forgets them: nothing arrives, and neither end is notified. New ones
// work.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		c.forgotten = true
	}
}

// LeadTo sends new connections to another server.
func (p *Proxy) LeadTo(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		c.close()
	}
	clear(p.pairs)
}

// Reset breaks all connections like a host that does not know them: with a
// reset, so that the data in flight is lost as well.
func (p *Proxy) Reset() {
	p.mu.Lock()
	for c := range p.pairs {
		for _, end := range []net.Conn{c.client, c.server} {
			if tcp, ok := end.(*net.TCPConn); ok {
				tcp.SetLinger(0)
			}
		}
	}
	p.mu.Unlock()
	p.Cut()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		// Each in a goroutine: a server that cannot be reached must not delay
		// the other connections.
		go p.connect(client)
	}
}

// dialLimit is how long to wait for a server that does not answer.
const dialLimit = 5 * time.Second

func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, dialLimit)
	if err != nil {
		client.Close()
		return
	}
	c := &pair{client: client, server: server}
	c.ctx, c.end = context.WithCancel(context.Background())
	p.mu.Lock()
	p.pairs[c] = true
	closed := p.closed
	p.mu.Unlock()
	if closed {
		p.Cut()
		return
	}
	go p.copy(c, server, client, func() Direction { return p.weather.Requests })
	go p.copy(c, client, server, func() Direction { return p.weather.Replies })
}

// copy forwards one direction of a connection. A delay holds up each parcel by
// the same time; the delays do not add up. Parcels of one connection stay in
// order, those of different connections do not.
func (p *Proxy) copy(c *pair, to, from net.Conn, weather func() Direction) {
	flight := make(chan parcel, mostParcels)
	go func() {
		defer p.forget(c)
		for x := range flight {
			Sleep(time.Until(x.at))
			if _, err := to.Write(x.data); err != nil {
				return
			}
		}
	}()
	defer close(flight)
	buf := make([]byte, 16<<10)
	hole := false
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		w := weather()
		if n > 0 && w.Lost {
			hole, c.holed = true, true
		}
		hole = hole || c.forgotten
		p.mu.Unlock()
		if n > 0 && !hole { // after a gap the data would be garbage
			delay := w.Delay
			if w.Jitter > 0 {
				delay += rand.N(w.Jitter)
			}
			select {
			case flight <- parcel{bytes.Clone(buf[:n]), time.Now().Add(delay)}:
			case <-c.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// forget closes a pair of connections when one end of it is gone, unless the
// other end cannot be notified.
func (p *Proxy) forget(c *pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.forgotten && !p.closed {
		return
	}
	c.close()
	delete(p.pairs, c)
}
