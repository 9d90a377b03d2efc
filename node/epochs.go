package node

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Epochs is how often each node of a membership was marked, as another node's
// marker has it: KEY:EPOCH pairs in the order of the keys, with commas between
// them. A server that comes back as it was before another one took its place has
// a lower epoch than the other nodes have noted.
type Epochs string

// maxEpochs is the number of nodes that a marker notes at most.
const maxEpochs = 64

// EpochKey is the key of the node with this name.
func EpochKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

// Of returns the epoch of the node with this key; 0 if none is noted.
func (e Epochs) Of(key string) uint64 {
	for pair := range strings.SplitSeq(string(e), ",") {
		if k, n, ok := strings.Cut(pair, ":"); ok && k == key {
			epoch, _ := strconv.ParseUint(n, 10, 53)
			return epoch
		}
	}
	return 0
}

// NewEpochs returns the epochs of the nodes with these keys. Those that are 0
// are left out.
func NewEpochs(of map[string]uint64) Epochs {
	var pairs []string
	for key, epoch := range of {
		if epoch > 0 {
			pairs = append(pairs, key+":"+strconv.FormatUint(epoch, 10))
		}
	}
	slices.Sort(pairs) // keys have one length
	return Epochs(strings.Join(pairs, ","))
}

// Merge returns the higher epoch of each node. If these are more nodes than a
// marker notes, it returns e.
func (e Epochs) Merge(other Epochs) Epochs {
	if other == "" || other == e {
		return e
	}
	all := map[string]uint64{}
	for pair := range strings.SplitSeq(string(e+","+other), ",") {
		if key, n, ok := strings.Cut(pair, ":"); ok {
			epoch, _ := strconv.ParseUint(n, 10, 53)
			all[key] = max(all[key], epoch)
		}
	}
	if len(all) > maxEpochs {
		return e
	}
	return NewEpochs(all)
}
