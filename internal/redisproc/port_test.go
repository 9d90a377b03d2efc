//go:build unix

package redisproc

import (
	"net"
	"os"
	"strconv"
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
