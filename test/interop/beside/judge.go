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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// Judge notes who had a lock, and has package exclusion judge that. A hold begins when
// the answer of an acquisition was read, and ends before the holder is asked whether
// the lock is valid. If it says so, it relied on the lock for all of that time. A hold
// that is not valid shows nothing: its holder was delayed, and knew it.
type Judge struct {
	// NoFences leaves the fences out of the verdict: servers may lose theirs.
	NoFences bool

	servers []*servertest.Server
	name    string
	start   time.Time

	mu     sync.Mutex
	valid  []*Hold // those that were valid until their end
	faults []string
}

// Hold is a time in which a process had the lock.
type Hold struct {
	exclusion.Lease
	fault string // counts if the hold is valid
}

// NewJudge returns a judge of the lock with a name, on servers.
func NewJudge(name string, servers []*servertest.Server) *Judge {
	return &Judge{servers: servers, name: name, start: time.Now()}
}

func (j *Judge) now() int64 { return int64(time.Since(j.start)) }

// Begin notes that a side is about to ask.
func (j *Judge) Begin(side, kind string) *Hold {
	h := &Hold{Lease: exclusion.Lease{Who: side, Asked: j.now()}}
	if kind == "r" {
		h.Mode = node.Shared
	} else if kind != "" {
		h.Mode = node.Slotted
		fmt.Sscanf(kind, "s%d", &h.Slots)
	}
	return h
}

// Enter notes that it was granted the lock, and looks for the token in the fence
// of the servers.
func (j *Judge) Enter(h *Hold, token uint64, slot int) {
	h.Token, h.Slot, h.Got = token, uint8(slot), j.now()
	if !j.NoFences {
		h.fault = j.fences(h)
	}
}

// Leave notes that the hold is over; Settle whether it was valid until then.
func (j *Judge) Leave(h *Hold) { h.Until = j.now() }

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
	j.valid = append(j.valid, h)
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
	return fmt.Sprintf("%s has the lock with token %d, and the fences are %s", h.Who, h.Token, strings.Join(found, ", "))
}

// Turns returns how many valid holds a side had.
func (j *Judge) Turns(side string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, h := range j.valid {
		if h.Who == side {
			n++
		}
	}
	return n
}

// Faults returns the rules that were broken, as sentences.
func (j *Judge) Faults() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var leases []*exclusion.Lease
	for _, h := range j.valid {
		leases = append(leases, &h.Lease)
	}
	faults := slices.Clone(j.faults)
	for _, f := range exclusion.Judge(leases) {
		faults = append(faults, string(f.Rule)+": "+f.Text)
	}
	return faults
}
