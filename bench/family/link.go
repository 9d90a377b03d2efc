package family

import (
	"io"
	"net"
	"sync"
	"time"
)

// link is a slow way to a server: what a client sends arrives later, in order;
// what the server answers arrives at once.
type link struct {
	listener net.Listener
	server   string
	delay    time.Duration

	mu    sync.Mutex
	conns []net.Conn
}

func startLink(server string, delay time.Duration) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, server: server, delay: delay}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(client)
		}
	}()
	return l, nil
}

func (l *link) address() string { return l.listener.Addr().String() }

func (l *link) close() {
	l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
}

func (l *link) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer server.Close()
	l.mu.Lock()
	l.conns = append(l.conns, client, server)
	l.mu.Unlock()
	type part struct {
		due  time.Time
		data []byte
	}
	parts := make(chan part, 1024)
	go func() {
		defer server.Close()
		for p := range parts {
			time.Sleep(time.Until(p.due))
			if _, err := server.Write(p.data); err != nil {
				break
			}
		}
		for range parts { // until the reader has ended
		}
	}()
	go func() {
		io.Copy(client, server)
		client.Close()
	}()
	defer close(parts)
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if n > 0 {
			parts <- part{time.Now().Add(l.delay), append([]byte(nil), buffer[:n]...)}
		}
		if err != nil {
			return
		}
	}
}
