//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

// park is some devices. Each checks tokens, as the resource of one slot.
type park struct {
	t       *testing.T
	devices []*httptest.Server

	mu      sync.Mutex
	busy    map[int]*work   // what each device works on
	paused  map[string]bool // whose copies are paused
	most    int             // how many were busy at a time
	done    []string
	stopped bool
	blocked chan struct{} // nothing is done before it is closed
}

// work is one film on one device.
type work struct {
	film string
	end  chan struct{} // closed when the device gets another
}

func newPark(t *testing.T, count int) *park {
	p := &park{t: t, busy: map[int]*work{}, paused: map[string]bool{}, blocked: make(chan struct{})}
	for i := range count {
		gate, err := fence.NewGate(nil)
		if err != nil {
			t.Fatal(err)
		}
		check, err := fence.Middleware(gate, nil)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(check(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.work(i, r) })))
		t.Cleanup(server.Close)
		p.devices = append(p.devices, server)
	}
	t.Cleanup(p.open)
	return p
}

// work does a film. A device that gets another film ends the one before: its copy
// must be paused.
func (p *park) work(device int, r *http.Request) {
	w := &work{r.FormValue("film"), make(chan struct{})}
	p.mu.Lock()
	if other := p.busy[device]; other != nil {
		if !p.paused[other.film] {
			p.t.Errorf("device %d gets %s while it works on %s", device, w.film, other.film)
		}
		close(other.end)
	}
	p.busy[device] = w
	p.most = max(p.most, len(p.busy))
	p.mu.Unlock()
	ended := true
	select {
	case <-p.blocked:
		ended = false
	case <-w.end:
	case <-r.Context().Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[device] == w {
		delete(p.busy, device)
	}
	if ended {
		panic(http.ErrAbortHandler)
	}
	p.done = append(p.done, w.film)
}

// pause notes whether the copy of a film is paused.
func (p *park) pause(film string, paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused[film] = paused
}

// open lets the devices finish their work.
func (p *park) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.stopped = true
		close(p.blocked)
	}
}

// working returns the films that are worked on.
func (p *park) working() (films []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.busy {
		films = append(films, w.film)
	}
	return films
}

// await waits until the films that are worked on are as they should be.
func (p *park) await(what string, right func(films []string) bool) []string {
	p.t.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		films := p.working()
		switch {
		case right(films):
			return films
		case time.Now().After(late):
			p.t.Fatalf("never %s; last %q", what, films)
		}
	}
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

// A copy is paused while its device works, and its slot is given to another. Its
// film is done again, and not beside the other's.
func TestCopyThatWasPausedAsksForAnotherSlot(t *testing.T) {
	env := processes.File(t)
	p := newPark(t, 1)
	a := p.start("film-a", env)
	p.await("film-a is worked on", func(films []string) bool { return slices.Equal(films, []string{"film-a"}) })
	p.pause("film-a", true)
	a.Signal(syscall.SIGSTOP)
	b := p.start("film-b", env)
	p.await("film-b is worked on", func(films []string) bool { return slices.Equal(films, []string{"film-b"}) })
	p.pause("film-a", false)
	a.Signal(syscall.SIGCONT)
	a.Line("film-a again")
	processes.Waiting(t, env, "transcoders", 1)
	p.open()
	b.Line("film-b is done")
	a.Line("film-a is done")
}
