//go:build unix

// Package beside has two sides contend for one lock on the same servers, and
// judges whether they excluded each other. The sides are two versions of
// redlatch, redlatch and a client that is written from docs/wire.md, or redlatch
// and a foreign client.
//
// A Player is a driver that executes orders (package foreign). It answers
//
//	acquire NAME MS WAIT-MS [KIND]  ok TOKEN [SLOT] | held | error TEXT
//	extend MS                       ok | lost        if it does not extend by itself
//	valid                           ok | lost
//	release                         ok | lost | error TEXT
//
// KIND is r for a reader, sK for one of K slots, and absent for the whole lock.
package beside

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// Judge decides without a clock. A hold begins when the answer of an acquisition
// was read, and ends before the holder is asked whether the lock is valid. If it
// says so, it relied on the lock for all of that time. A hold that is not valid
// shows nothing: its holder was delayed, and knew it.
type Judge struct {
	// NoFences has the judge not look at the fences: servers may lose theirs.
	NoFences bool

	servers []*servertest.Server
	name    string

	mu     sync.Mutex
	moves  int // counts what happens, for the order of holds
	open   map[*Hold]bool
	valid  []*Hold // those that were valid until their end
	faults []string
}

// Hold is a time in which a process had the lock.
type Hold struct {
	Side, Kind     string
	Token          uint64
	Slot           int
	began, entered int     // when the acquisition was ordered, and when it was answered
	beside         []*Hold // those that were open when it was answered
	fault          string  // counts if the hold is valid
}

// NewJudge returns a judge of the lock with a name, on servers.
func NewJudge(name string, servers []*servertest.Server) *Judge {
	return &Judge{servers: servers, name: name, open: map[*Hold]bool{}}
}

// Begin notes that a side is about to ask.
func (j *Judge) Begin(side, kind string) *Hold {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.moves++
	return &Hold{Side: side, Kind: kind, began: j.moves}
}

// Enter notes that it was granted the lock, and looks for the token in the fence
// of the servers.
func (j *Judge) Enter(h *Hold, token uint64, slot int) {
	j.mu.Lock()
	j.moves++
	h.Token, h.Slot, h.entered = token, slot, j.moves
	h.beside = slices.Collect(maps.Keys(j.open))
	j.open[h] = true
	j.mu.Unlock()
	if !j.NoFences {
		h.fault = j.fences(h)
	}
}

// Leave notes that the hold is over; Settle whether it was valid until then.
func (j *Judge) Leave(h *Hold) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.open, h)
}

// Settle notes whether the lease was valid when Leave was called.
func (j *Judge) Settle(h *Hold, valid bool) {
	if !valid {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if h.fault != "" {
		j.faults = append(j.faults, h.fault)
	}
	for _, other := range j.valid {
		first, second := other, h
		if h.entered < other.entered {
			first, second = h, other
		}
		if slices.Contains(second.beside, first) && conflict(first, second) {
			j.faults = append(j.faults, fmt.Sprintf("two had the lock: %s, and then %s", first, second))
		}
		if grows(first, second) && second.Token <= first.Token {
			j.faults = append(j.faults, fmt.Sprintf("the token did not grow: %s had the lock, and then %s", first, second))
		}
	}
	j.valid = append(j.valid, h)
}

func (h *Hold) String() string {
	text := fmt.Sprintf("%s with token %d", h.Side, h.Token)
	if h.Kind != "" {
		text += fmt.Sprintf(" as %s in slot %d", h.Kind, h.Slot)
	}
	return text
}

// conflict reports whether two holds may not be valid together.
func conflict(a, b *Hold) bool {
	switch {
	case a.Kind != b.Kind || a.Kind == "":
		return true
	case a.Kind == "r":
		return false
	}
	return a.Slot == b.Slot
}

// fences reports if fewer than a quorum of the servers have the token, or a
// higher one, as their fence: then the next holder's token need not be higher.
func (j *Judge) fences(h *Hold) string {
	var found []string
	n := 0
	for _, s := range j.servers {
		text, err := s.Try("GET", "redlatch:1:fence:{"+j.name+"}")
		if err != nil {
			text = err.Error()
		}
		found = append(found, fmt.Sprintf("%q", text))
		if fence, err := strconv.ParseUint(text[:min(20, len(text))], 10, 64); err == nil && fence >= h.Token {
			n++
		}
	}
	if n > len(j.servers)/2 {
		return ""
	}
	return fmt.Sprintf("%s has the lock with token %d, and the fences are %s", h.Side, h.Token, strings.Join(found, ", "))
}

// Turns returns how many valid holds a side had.
func (j *Judge) Turns(side string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, h := range j.valid {
		if h.Side == side {
			n++
		}
	}
	return n
}

// Faults returns the rules that were broken, as sentences.
func (j *Judge) Faults() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.faults)
}

// grows reports whether the token of the second of two holds must be higher.
// Holds that do not exclude each other may have been granted in another order
// than they were answered; so the second must have begun after the first was. Those
// of a foreign client have no token.
func grows(first, second *Hold) bool {
	if first.Kind == "r" && second.Kind == "r" || first.Token == 0 || second.Token == 0 {
		return false
	}
	return conflict(first, second) || second.began > first.entered
}
