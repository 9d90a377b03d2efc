//go:build unix

package redisproc

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/internal/test/check"
)

// TestServerWhosePortWasTakenGetsAnother takes the port of a cluster's bus,
// which is 10,000 above the server's, between the choice of a port and the
// start.
func TestServerWhosePortWasTakenGetsAnother(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs redis-server, and -short starts no servers")
	}
	dir, err := os.MkdirTemp("", "redis")
	check.Must(t, err)
	defer os.RemoveAll(dir)
	s := &Server{Dir: dir, Settings: []string{"--cluster-enabled", "yes"}}
	var taken []int
	choosePort = func() (int, error) {
		for {
			port, err := FreePort()
			if err != nil || len(taken) > 0 && port+10000 < 65536 {
				return port, err
			}
			if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+10000)); err == nil {
				t.Cleanup(func() { l.Close() })
				taken = append(taken, port)
				return port, nil
			}
		}
	}
	defer func() { choosePort = FreePort }()
	check.Must(t, s.Start())
	defer s.Kill()
	if s.Port == taken[0] {
		t.Errorf("it answers on port %d, where the bus was taken from", s.Port)
	}
	if reply, err := resp.Ask("tcp", s.Addr(), askLimit, "PING"); err != nil || reply != "PONG" {
		t.Errorf("on port %d: %q, %v", s.Port, reply, err)
	}
}

// TestPortsAreNotThoseOfConnections: the system gives a connection any free port of its
// range, such as that of a server that is down for a moment.
func TestPortsAreNotThoseOfConnections(t *testing.T) {
	first := highest
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		first, err = strconv.Atoi(strings.Fields(string(text))[0])
		check.Must(t, err)
	}
	for range 20 {
		if port, err := FreePort(); err != nil || port >= first {
			t.Errorf("got %d, %v, and connections have ports from %d on", port, err, first)
		}
	}
}

// TestPortsOfAProcessAreItsOwn: the port of a server that is down is not given to
// another process meanwhile.
func TestPortsOfAProcessAreItsOwn(t *testing.T) {
	for range 2 * blockSize {
		port, err := FreePort()
		check.Must(t, err)
		if l, err := listenOn(port - (port-lowest)%blockSize); err == nil {
			l.Close()
			t.Errorf("another process can take the block of port %d", port)
		}
	}
}
