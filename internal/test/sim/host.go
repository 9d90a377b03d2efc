package sim

import (
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// host is a server, and its faults.
type host struct {
	server *Server
	clock  *ticker

	mu     sync.Mutex
	down   time.Duration // until when it does not answer at all
	frozen time.Duration // until when it does nothing
	// revived is set once it has restarted with older data: a lock that was
	// released since then is held again, until it expires.
	revived bool
}

func newHost(w *World, i int) *host {
	clock := newTicker(w.start, w.plan.NodeClocks[i], w.unevenUntil())
	h := &host{clock: clock, server: NewServer(fmt.Sprint("node ", i), clock.Now, true)}
	h.server.tell = func(wake node.Wake) {
		w.mu.Lock()
		client, known := w.values[wake.Value]
		w.mu.Unlock()
		if known {
			w.links[client][i].wake(wake)
		}
	}
	h.server.broken = func(what string) { w.fail("%s", what) }
	return h
}

// state says how long the host is still paused, and whether it is down.
func (h *host) state(now time.Duration) (frozen time.Duration, down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.frozen-now), now < h.down
}

// schedule injects a fault when its time comes.
func (w *World) schedule(f Fault, n uint64) {
	var old nodestate.Server
	if f.Kind == CrashStale {
		w.after(max(0, f.At-f.By)+w.jitter(n), func() { old = w.hosts[f.Node].server.save() })
	}
	w.after(f.At+w.jitter(n^0xfa17), func() {
		if w.ctx.Err() != nil {
			return
		}
		w.note("%v", f)
		w.strike(f, n, &old)
	})
}

func (w *World) strike(f Fault, n uint64, old *nodestate.Server) {
	h, now := w.hosts[f.Node], w.now()
	until := min(now+f.For, w.plan.Mend)
	onLinks := func(do func(l *link)) {
		for client, links := range w.links {
			if f.Client == client || w.plan.Seed+n&1 == 0 {
				do(links[f.Node])
			}
		}
	}
	switch f.Kind {
	case CrashKeep, CrashEmpty, CrashStale, Flush:
		w.crash(f, n, old)
	case Freeze:
		h.mu.Lock()
		h.frozen = max(h.frozen, until)
		h.mu.Unlock()
	case Cut:
		onLinks(func(l *link) { l.breakOff(); l.reopened() })
	case Partition:
		onLinks(func(l *link) { l.lose(&l.gone, until) })
	case Isolation:
		for i, l := range w.links[f.Client] {
			if i != f.Node {
				l.lose(&l.gone, until)
			}
		}
	case Deafness:
		onLinks(func(l *link) { l.lose(&l.deaf, until) })
	case Pause:
		w.mu.Lock()
		w.paused[f.Client] = max(w.paused[f.Client], now+f.For)
		w.mu.Unlock()
	case Death:
		w.mu.Lock()
		w.dead[f.Client] = true
		w.mu.Unlock()
		for _, l := range w.links[f.Client] {
			l.lose(&l.gone, 1<<62)
			l.breakOff()
		}
		w.kill(f.Client)
	case Wall:
		w.clocks[f.Client].set(f.By)
	case Back:
		h.setBack(-f.By, w.plan.apart())
	case Forward:
		h.clock.set(f.By)
	case Evict:
		for i := range w.plan.Names {
			h.server.evict(nameOf(i))
		}
	}
}

// crash has a server go down and restart with the data that it has, or lose the
// data without going down.
func (w *World) crash(f Fault, n uint64, old *nodestate.Server) {
	h, now := w.hosts[f.Node], w.now()
	if _, down := h.state(now); down {
		return // it is down already
	}
	restart := func(again func()) {
		h.mu.Lock()
		h.down = now + f.For
		h.mu.Unlock()
		for _, links := range w.links {
			links[f.Node].breakOff()
		}
		w.after(f.For, func() {
			again()
			for _, links := range w.links {
				links[f.Node].reopened()
			}
		})
	}
	switch f.Kind {
	case CrashKeep:
		kept := h.server.save()
		restart(func() { h.server.restart(kept) })
	case CrashEmpty:
		restart(h.server.restartEmpty)
	case CrashStale:
		restart(func() {
			h.mu.Lock()
			h.revived = true
			h.mu.Unlock()
			h.server.restart(*old)
		})
	case Flush:
		h.server.flush()
	}
}

// setBack sets the clock back, no further than nodes may be apart.
func (h *host) setBack(by, apart time.Duration) {
	h.clock.mu.Lock()
	defer h.clock.mu.Unlock()
	h.clock.offset = max(h.clock.offset-by, min(h.clock.offset, -apart*2/5))
}

// lose blocks a direction until some time, and notifies the client when it is
// open again.
func (l *link) lose(way *time.Duration, until time.Duration) {
	l.mu.Lock()
	*way = max(*way, until)
	l.mu.Unlock()
	if until < 1<<61 {
		l.w.after(until-l.w.now()+1, l.reopened)
	}
}
