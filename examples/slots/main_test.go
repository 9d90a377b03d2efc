//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

// park is some devices. Each checks tokens, as the resource of one slot.
type park struct {
	t       *testing.T
	devices []*httptest.Server

	blocked context.Context // nothing is done before it ends
	open    func()          // ends it

	mu   sync.Mutex
	busy map[int]string // the film that each device works on
	most int            // how many were busy at a time
	done []string
}

func newPark(t *testing.T, count int) *park {
	p := &park{t: t, busy: map[int]string{}}
	p.blocked, p.open = context.WithCancel(t.Context())
	for i := range count {
		gate, err := fence.NewGate(nil)
		check.Must(t, err)
		checked, err := fence.Middleware(gate, nil)
		check.Must(t, err)
		server := httptest.NewServer(checked(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.work(i, r) })))
		t.Cleanup(server.Close)
		p.devices = append(p.devices, server)
	}
	return p
}

// work does a film. No device gets one while it works on another.
func (p *park) work(device int, r *http.Request) {
	film := r.FormValue("film")
	p.mu.Lock()
	if other := p.busy[device]; other != "" {
		p.t.Errorf("device %d gets %s while it works on %s", device, film, other)
	}
	p.busy[device] = film
	p.most = max(p.most, len(p.busy))
	p.mu.Unlock()
	ended := true
	select {
	case <-p.blocked.Done():
		ended = false
	case <-r.Context().Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, device)
	if ended {
		panic(http.ErrAbortHandler)
	}
	p.done = append(p.done, film)
}

// await waits until the films that are worked on are as they should be.
func (p *park) await(what string, right func(films []string) bool) (films []string) {
	p.t.Helper()
	poll.Until(p.t, what, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		films = slices.Collect(maps.Values(p.busy))
		return right(films)
	})
	return films
}

func (p *park) start(name string, env []string) *processes.Process {
	var urls []string
	for _, d := range p.devices {
		urls = append(urls, d.URL)
	}
	return processes.Start(p.t, name, env, "-devices", strings.Join(urls, ","), "-ttl", "2s", name)
}

func TestAsManyWorkAsThereAreDevicesAndEachOnItsOwn(t *testing.T) {
	_, env := processes.Quorum(t, 3)
	p := newPark(t, 3)
	copies := map[string]*processes.Process{}
	for i := range 6 {
		film := fmt.Sprint("film-", i)
		copies[film] = p.start(film, env)
	}
	first := p.await("three are worked on", func(films []string) bool { return len(films) == 3 })
	processes.Waiting(t, env, "transcoders", 3)

	// The slot of a copy that is killed is free when its lock has expired.
	copies[first[0]].Kill()
	delete(copies, first[0])
	p.await("another works on the device of the one that was killed", func(films []string) bool {
		return len(films) == 3 && !slices.Contains(films, first[0])
	})
	p.open()
	for film, c := range copies {
		c.Line(film + " is done")
		c.Ends(0)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.done)
	if p.most != 3 || len(slices.Compact(p.done)) != 5 {
		t.Errorf("%d devices were busy at a time, and %q are done", p.most, p.done)
	}
}
