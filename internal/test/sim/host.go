package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// host is a server, and its faults.
type host struct {
	number int
	server *Server
	clock  *ticker
	// shelf is the server of a node without a clock, and watch somebody who observes
	// it from the beginning; nil for others.
	shelf *clockless.Shelf
	watch *casnode.Node

	down   time.Duration // until when it does not answer at all
	frozen time.Duration // until when it does nothing
	// revived is set once it has restarted with older data: a lock that was
	// released since then is held again, until it expires.
	revived bool
}

func newHost(w *World, i int) *host {
	clock := newTicker(w.start, w.plan.NodeClocks[i], w.unevenUntil())
	h := &host{number: i, clock: clock, server: NewServer(fmt.Sprint("node ", i), clock.Now, true)}
	h.server.tell = func(wake node.Wake) {
		if c := w.ownerOf(wake.Value); c != nil {
			c.links[i].wake(wake)
		}
	}
	h.server.broken = func(what string) { w.fail("%s", what) }
	if i < w.plan.Observed {
		h.shelf = clockless.New(clock.elapsed)
		h.watch = casnode.New(h.shelf.Open(), &casnode.Options{Uptime: clock.elapsed})
	}
	return h
}

// holders returns those that have the name, or a part of it.
func (h *host) holders(name string) []node.Holder {
	if h.shelf == nil {
		return h.server.holders(name)
	}
	l, err := h.watch.Look(context.Background(), name)
	if err != nil {
		panic(err)
	}
	return l.Holders
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
		w.note("%+v", f)
		w.strike(f, n, &old)
	})
}

func (w *World) strike(f Fault, n uint64, old *nodestate.Server) {
	h, c, now := w.hosts[f.Node], w.clients[f.Client], w.now()
	until := min(now+f.For, w.plan.Mend)
	onLinks := func(do func(l *link)) {
		for _, other := range w.clients {
			if c == other || w.plan.Seed+n&1 == 0 {
				do(other.links[f.Node])
			}
		}
	}
	switch f.Kind {
	case CrashKeep:
		kept := h.server.save()
		w.crash(h, f.For, func() { h.server.restart(kept) })
	case CrashEmpty:
		w.crash(h, f.For, h.server.restartEmpty)
	case CrashStale:
		w.crash(h, f.For, func() {
			w.locked(func() { h.revived = true })
			h.server.restart(*old)
		})
	case Flush:
		if h.down <= now {
			h.server.flush()
		}
	case Freeze:
		w.locked(func() { h.frozen = max(h.frozen, until) })
	case Cut:
		onLinks(func(l *link) { l.breakOff(); l.reopened() })
	case Partition:
		onLinks(func(l *link) { l.lose(&l.gone, until) })
	case Isolation:
		for _, l := range c.links {
			if l.host != h {
				l.lose(&l.gone, until)
			}
		}
	case Deafness:
		onLinks(func(l *link) { l.lose(&l.deaf, until) })
	case Pause:
		w.locked(func() { c.paused = max(c.paused, now+f.For) })
	case Death:
		w.locked(func() { c.dead = true })
		for _, l := range c.links {
			l.lose(&l.gone, 1<<62)
			l.breakOff()
		}
		c.kill()
	case Wall:
		c.clock.set(f.By)
	case Back:
		h.setBack(-f.By, w.plan.apart())
	case Forward:
		h.clock.set(f.By)
	case Evict:
		for i := range w.plan.Names {
			h.server.change(func(state *nodestate.Server) { state.Evict(h.server.clock(), nameOf(i)) })
		}
	}
}

// crash takes a server down for a while, unless it is down already.
func (w *World) crash(h *host, d time.Duration, restart func()) {
	now := w.now()
	if now < h.down {
		return
	}
	w.locked(func() { h.down = now + d })
	for _, c := range w.clients {
		c.links[h.number].breakOff()
	}
	w.after(d, func() {
		restart()
		for _, c := range w.clients {
			c.links[h.number].reopened()
		}
	})
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
	l.w.locked(func() { *way = max(*way, until) })
	if until < 1<<61 {
		l.w.after(until-l.w.now()+1, l.reopened)
	}
}
