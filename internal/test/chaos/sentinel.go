//go:build unix

package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/poll"
)

const (
	masterName     = "main"
	replicasOfEach = 2
	replicaLag     = 2 * time.Second
)

// watched is a Redis master with its replicas, and the sentinel that watches them.
type watched struct {
	in       *node
	servers  []*redisproc.Server
	sentinel *redisproc.Server
}

func (w *watched) Addr() string              { return w.sentinel.Addr() }
func (w *watched) URL(address string) string { return "redis+sentinel://" + address + "/" + masterName }

// Start starts all of it.
func (w *watched) Start() error {
	settings := durable()
	for range 1 + replicasOfEach {
		s := w.in.newRedis()
		if err := s.Server.Start(settings...); err != nil {
			return err
		}
		w.servers = append(w.servers, s.Server)
		settings = append(durable(), "--replicaof", "127.0.0.1", fmt.Sprint(w.servers[0].Port))
	}
	dir := filepath.Join(w.in.in.dir, fmt.Sprintf("sentinel%d", w.in.number))
	config := dir + ".conf"
	text := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 1\nsentinel down-after-milliseconds %[1]s 500\nsentinel failover-timeout %[1]s 2000\n", masterName, w.servers[0].Port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	w.sentinel = &redisproc.Server{Program: w.in.in.program, Sentinel: config, Dir: dir}
	if err := w.sentinel.Start(); err != nil {
		return err
	}
	return w.await("all replicas are online", func() bool { return w.inStep(w.servers[0]) })
}

// inStep reports whether the sentinel names this master, and all replicas follow
// it.
func (w *watched) inStep(master *redisproc.Server) bool {
	info, err := master.Ask("INFO", "replication")
	if err != nil || strings.Count(info, "state=online") != replicasOfEach {
		return false
	}
	seen, err := w.sentinel.Ask("INFO", "sentinel")
	return err == nil && strings.Contains(seen, fmt.Sprint("slaves=", replicasOfEach)) && w.master() == master
}

// master returns the server that the sentinel names.
func (w *watched) master() *redisproc.Server {
	text, err := w.sentinel.Ask("SENTINEL", "get-master-addr-by-name", masterName)
	if err != nil {
		return nil
	}
	for _, s := range w.servers {
		if strings.HasSuffix(text, fmt.Sprint("\n", s.Port)) {
			return s
		}
	}
	return nil
}

// failover kills the master, or freezes it, until the sentinel has promoted a
// replica. The old master then comes back as a replica. It calls promoted in
// between.
func (w *watched) failover(rng *rand.Rand, promoted func()) error {
	old := w.master()
	if old == nil {
		promoted()
		return errors.New("the sentinel names no master")
	}
	var err error
	killed := rng.IntN(2) == 0
	if killed {
		old.Kill()
	} else {
		err = old.Freeze()
	}
	if err == nil {
		err = w.await("a replica is promoted", func() bool { m := w.master(); return m != nil && m != old })
	}
	promoted()
	time.Sleep(between(rng, 0, time.Second)) // it comes back at any moment
	if killed {
		err = errors.Join(err, again(func() error { return old.Start(durable()...) }))
	} else {
		err = errors.Join(err, old.Thaw())
	}
	if err != nil {
		return err
	}
	return w.await("the old master follows the new one", func() bool { m := w.master(); return m != nil && w.inStep(m) })
}

// awaited is how long a sentinel may take.
const awaited = 3 * time.Minute

// await polls: a sentinel has no event to wait for. On a busy machine it may act
// late: whenever its clock has jumped by 2 s, it does nothing for 30 s.
func (w *watched) await(what string, is func() bool) error {
	if poll.Holds(awaited, is) {
		return nil
	}
	return fmt.Errorf("after %v it is not so that %s", awaited, what)
}

// Stop ends all of it.
func (w *watched) Stop() {
	for _, s := range append(w.servers, w.sentinel) {
		if s != nil {
			s.Thaw()
			s.Kill()
		}
	}
}
