//go:build unix

package redistest

import (
	"net"
	"strconv"
	"testing"
)

// TestServerWhosePortWasTakenGetsAnother takes the port of a cluster's bus
// between the choice of a port and the start.
func TestServerWhosePortWasTakenGetsAnother(t *testing.T) {
	s := &Server{t: t, dir: t.TempDir(), args: []string{"--cluster-enabled", "yes"}}
	var taken net.Listener
	for taken == nil {
		port, _ := strconv.Atoi(FreePort(t))
		s.port = port
		if port+10000 < 65536 {
			taken, _ = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+10000))
		}
	}
	defer taken.Close()
	before := s.port
	s.start()
	s.await()
	if s.port == before || !s.isOurs() {
		t.Errorf("it answers on port %d, where the bus was taken from", s.port)
	}
}
