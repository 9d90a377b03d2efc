package locktest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// Guarded is a node in memory with a marker. It can be rebooted, with its data
// or without.
type Guarded struct {
	Name string

	mu    sync.Mutex // guards all fields below
	boots int
	down  bool
	hook  func(req any)
	back  time.Duration
	state nodestate.Server
}

// NewGuarded returns nodes with the names 1 to n, twice.
func NewGuarded(n int) ([]*Guarded, []redlatch.Node) {
	all, nodes := make([]*Guarded, n), make([]redlatch.Node, n)
	for i := range all {
		all[i] = &Guarded{Name: strconv.Itoa(i + 1)}
		all[i].Reboot()
		nodes[i] = all[i]
	}
	return all, nodes
}

// Reboot gives the node the identity of a new process. It keeps its data.
func (g *Guarded) Reboot() { g.restart(true) }

// Empty gives the node the identity of a new process, without data.
func (g *Guarded) Empty() { g.restart(false) }

func (g *Guarded) restart(kept bool) {
	g.set(func() {
		g.boots++
		g.state.Restart(kept, fmt.Sprint(g.Name, "/", g.boots))
	})
}

func (g *Guarded) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

// SetDown makes the node refuse connections.
func (g *Guarded) SetDown(down bool) { g.set(func() { g.down = down }) }

// SetBack sets the node's clock back.
func (g *Guarded) SetBack(by time.Duration) { g.set(func() { g.back += by }) }

// OnRequest calls the hook before each request, of any contract.
func (g *Guarded) OnRequest(hook func(req any)) { g.set(func() { g.hook = hook }) }

// Save returns all that the node keeps, and Load gives it back.
func (g *Guarded) Save() nodestate.Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Clone()
}

func (g *Guarded) Load(saved nodestate.Server) { g.set(func() { g.state = saved }) }

// Marker returns the node's marker.
func (g *Guarded) Marker() nodestate.Marker {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Marker
}

func (g *Guarded) Do(_ context.Context, req node.Request) (reply node.Reply, err error) {
	err = g.receive(req, nodestate.Check(req), func(now time.Time) { reply, _ = g.state.Apply(now, req) })
	return reply, err
}

func (g *Guarded) Mark(_ context.Context, req node.MarkRequest) (reply node.MarkReply, err error) {
	err = g.receive(req, nodestate.CheckMark(req), func(now time.Time) { reply = g.state.Mark(now, req) })
	return reply, err
}

func (g *Guarded) Records(_ context.Context, req node.RecordsRequest) (reply node.RecordsReply, err error) {
	err = g.receive(req, nodestate.CheckRecords(req), func(now time.Time) { reply = g.state.Records(now, req) })
	return reply, err
}

// receive executes a request, unless it is bad or the node is down.
func (g *Guarded) receive(req any, bad error, execute func(now time.Time)) error {
	g.mu.Lock()
	hook := g.hook
	g.mu.Unlock()
	if hook != nil {
		hook(req)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return fmt.Errorf("connection refused (%w)", node.ErrUnsent)
	}
	if bad == nil {
		g.state.Silent = true
		execute(time.Now().Add(-g.back))
	}
	return bad
}

func (g *Guarded) String() string    { return g.Name }
func (g *Guarded) Close() error      { return nil }
func (g *Guarded) GuardsAlone() bool { return true }
func (g *Guarded) Identity(context.Context) (string, time.Time, error) {
	return "guarded:" + g.Name, time.Now().Add(-g.back), nil
}
