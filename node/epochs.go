package node

import (
	"slices"
	"strconv"
	"strings"
)

// Epochs is the least epoch that the marker of each lineage must have, as far as a
// node knows: LINEAGE:EPOCH pairs in the order of the lineages, with commas between
// them. A server that comes back as it was before another one took its place has a
// lower epoch.
//
// A lineage is in the marker, and so is copied with a server's data: 8 hexadecimal
// digits, drawn at random for a server that had no marker. Addresses do not matter.
type Epochs string

// OtherLineages stands for each lineage that Epochs do not list.
const OtherLineages = "0"

// NewEpochs returns these epochs. Those that are 0 are left out.
func NewEpochs(of map[string]uint64) Epochs {
	var pairs []string
	for lineage, epoch := range of {
		if epoch > 0 {
			pairs = append(pairs, lineage+":"+strconv.FormatUint(epoch, 10))
		}
	}
	slices.Sort(pairs)
	return Epochs(strings.Join(pairs, ","))
}

// Map returns the epochs of the lineages that are listed, and of OtherLineages.
func (e Epochs) Map() map[string]uint64 {
	of := map[string]uint64{OtherLineages: 0}
	for pair := range strings.SplitSeq(string(e), ",") {
		if lineage, n, ok := strings.Cut(pair, ":"); ok {
			of[lineage], _ = strconv.ParseUint(n, 10, 53)
		}
	}
	return of
}

// Of returns the least epoch of a lineage; 0 if any will do.
func (e Epochs) Of(lineage string) uint64 {
	of := e.Map()
	if epoch, listed := of[lineage]; listed {
		return epoch
	}
	return of[OtherLineages]
}

// Merge returns the higher epoch of each lineage. One that the epoch of all others
// has overtaken is not listed any more: so the list does not grow.
func (e Epochs) Merge(other Epochs) Epochs {
	if other == "" || other == e {
		return e
	}
	a, b := e.Map(), other.Map()
	all := map[string]uint64{OtherLineages: max(a[OtherLineages], b[OtherLineages])}
	add := func(mine, theirs map[string]uint64) {
		for lineage, epoch := range mine {
			least, listed := theirs[lineage]
			if !listed {
				least = theirs[OtherLineages]
			}
			if epoch >= least || listed || least < all[OtherLineages] {
				all[lineage] = max(epoch, least)
			}
		}
	}
	add(a, b)
	add(b, a)
	return NewEpochs(all)
}
