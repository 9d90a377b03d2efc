package server

import (
	"encoding/json"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
)

// open runs links to a server that sends back what it gets, and returns a
// connection to each.
func open(t *testing.T, servers int, n Network) []net.Conn {
	t.Helper()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { echo.Close() })
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go io.Copy(conn, conn)
		}
	}()
	for range servers {
		n.Servers = append(n.Servers, echo.Addr().String())
	}
	in, config := io.Pipe()
	out, addresses := io.Pipe()
	go RunLinks(in, addresses)
	go json.NewEncoder(config).Encode(n)
	t.Cleanup(func() { config.Close() })
	var list []string
	check.Must(t, json.NewDecoder(out).Decode(&list))
	var conns []net.Conn
	for _, a := range list {
		conn, err := net.Dial("tcp", a)
		check.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		conns = append(conns, conn)
	}
	return conns
}

// trip sends a byte and waits until it is back.
func trip(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

// TestLinksDelay looks at the shortest time: a busy machine adds to all others.
func TestLinksDelay(t *testing.T) {
	delays := []time.Duration{time.Millisecond, 20 * time.Millisecond}
	for i, c := range open(t, 2, Network{Delay: delays[0], Last: delays[1]}) {
		best := time.Hour
		for end := time.Now().Add(10 * time.Second); best > delays[i]+delays[i]/2 && time.Now().Before(end); {
			best = min(best, trip(t, c))
		}
		if best < delays[i] || best > delays[i]+delays[i]/2 {
			t.Errorf("a round trip of %v took %v at the best", delays[i], best)
		}
	}
}
