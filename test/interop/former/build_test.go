//go:build unix

package former_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/test/interop/beside"
	"github.com/redlatch/redlatch/test/interop/foreign"
	"github.com/redlatch/redlatch/test/interop/former"
)

var must = check.Must

const (
	ttl = 2 * time.Second
	// The quarantine is a little over four seconds.
	maxTTL = 4 * time.Second
	// patience limits what takes a moment, on a busy machine.
	patience = 40 * time.Second
)

// The sides.
const (
	formerSide = "the former client"
	newSide    = "the new client"
)

// builds is where the workers are built, and what is built there.
var builds struct {
	folder string
	mu     sync.Mutex
	made   map[string]func() (string, error)
}

func TestMain(m *testing.M) {
	var err error
	if builds.folder, err = os.MkdirTemp("", "former"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	builds.made = map[string]func() (string, error){}
	code := m.Run()
	os.RemoveAll(builds.folder)
	os.Exit(code)
}

// built returns what build made for a name, and calls it once.
func built(name string, build func(folder string) (string, error)) (string, error) {
	builds.mu.Lock()
	made, ok := builds.made[name]
	if !ok {
		made = sync.OnceValues(func() (string, error) {
			folder := filepath.Join(builds.folder, name)
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return "", err
			}
			return build(folder)
		})
		builds.made[name] = made
	}
	builds.mu.Unlock()
	return made()
}

// newWorker returns the worker with the code of this tree.
func newWorker(t *testing.T) string {
	t.Helper()
	program, err := built("new", func(folder string) (string, error) {
		program := filepath.Join(folder, "worker")
		out, err := exec.Command("go", "build", "-o", program, "./worker").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, out)
		}
		return program, err
	})
	must(t, err)
	return program
}

// formerWorker returns the worker with the code of an earlier version. A
// checkout without history skips the test.
func formerWorker(t *testing.T, v former.Version) string {
	t.Helper()
	if v.Ref == "" {
		return newWorker(t)
	}
	program, err := built(v.Ref, func(folder string) (string, error) {
		root, err := filepath.Abs(filepath.Join("..", "..", ".."))
		if err != nil {
			return "", err
		}
		return former.Build(v, root, folder)
	})
	if none := (*former.NoHistory)(nil); errors.As(err, &none) {
		t.Skip(err)
	}
	must(t, err)
	return program
}

// both are the workers of two versions on the same servers.
type both struct {
	t       *testing.T
	servers []*servertest.Server
	program map[string]string // by side
}

// start returns a process of a side.
func (b *both) start(side string, flags ...string) *beside.Player {
	b.t.Helper()
	argv := append([]string{b.program[side], "-label", strings.ReplaceAll(side, " ", "-"),
		"-nodes", strings.Join(servertest.Addresses(b.servers), ","),
		"-max-ttl", maxTTL.String()}, flags...)
	p, err := foreign.Run(side, argv)
	must(b.t, err)
	b.t.Cleanup(p.Kill)
	return &beside.Player{Side: side, Process: p, Renews: true}
}

// take has a process take a lock.
func (b *both) take(p *beside.Player, name string, kind string) uint64 {
	b.t.Helper()
	token, _, err := p.Take(name, ttl, patience, kind)
	if err != nil {
		b.t.Fatalf("%s does not get the lock: %v", p.Side, err)
	}
	return token
}

// order has a process execute an order that must succeed.
func (b *both) order(p *beside.Player, words ...string) string {
	b.t.Helper()
	a := p.Order(words...)
	if !a.OK() {
		b.t.Fatalf("%s: %s: it answers %q", p.Side, words[0], a)
	}
	return a.Text
}

// cycle has a process take a lock and release it.
func (b *both) cycle(p *beside.Player, name string) uint64 {
	b.t.Helper()
	token := b.take(p, name, "")
	b.order(p, "release")
	return token
}

// each runs a test with each earlier version, on so many servers each.
func each(t *testing.T, sizes []int, test func(b *both)) {
	t.Parallel()
	servertest.Need(t)
	for _, v := range former.Versions() {
		for _, n := range sizes {
			t.Run(fmt.Sprintf("%s on %d", v.Name, n), func(t *testing.T) {
				t.Parallel()
				program := map[string]string{formerSide: formerWorker(t, v), newSide: newWorker(t)}
				test(&both{t: t, program: program, servers: servertest.Redis(t, n)})
			})
		}
	}
}

// turned are both orders of the sides.
var turned = [][2]string{{formerSide, newSide}, {newSide, formerSide}}
