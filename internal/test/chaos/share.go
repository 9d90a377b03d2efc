//go:build unix

package chaos

import (
	"fmt"

	contract "github.com/redlatch/redlatch/node"
)

// Share is what a lease has of a lock.
type Share = contract.Share

// The modes, as this package calls them.
const (
	Writer = contract.Exclusive
	Reader = contract.Shared
	Slot   = contract.Slotted
)

// plan says in which modes a name is asked for.
type plan struct {
	Name string `json:"name"`
	// Of a hundred acquisitions so many are readers', and so many take a slot.
	// The others are writers'.
	Readers int `json:"readers"`
	Slotted int `json:"slotted"`
	// Of a hundred writers so many become readers halfway.
	Downgrades int `json:"downgrades"`
}

// slots is how many slots a name has that has any.
const slots = 3

var (
	writersOnly = plan{}
	readersToo  = plan{Readers: 75, Downgrades: 40}
	slotsToo    = plan{Slotted: 94, Readers: 2, Downgrades: 20}
	allModes    = plan{Readers: 40, Slotted: 40, Downgrades: 40}
)

// plans returns the plans of so many names. Every mode is in them, unless the
// run is calm: then all are writers.
func plans(names int, calm bool) []plan {
	kinds := []plan{writersOnly, readersToo, slotsToo, allModes}
	switch {
	case calm:
		kinds = kinds[:1]
	case names == 1:
		kinds = kinds[3:]
	case names == 2:
		kinds = kinds[1:3]
	}
	var all []plan
	for i := range names {
		p := kinds[i%len(kinds)]
		p.Name = fmt.Sprintf("job-%d", i+1)
		all = append(all, p)
	}
	return all
}

// parts are the parts of the resource that a name protects, each with a counter
// and a fence of its own: one for each slot.
func (p plan) parts() []string {
	if p.Slotted == 0 {
		return []string{p.Name}
	}
	var all []string
	for slot := range slots {
		all = append(all, fmt.Sprintf("%s/%d", p.Name, slot))
	}
	return all
}
