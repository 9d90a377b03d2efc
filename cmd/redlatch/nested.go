package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

// heldVariable lists the locks that CMD runs under, the outermost first,
// separated by spaces. An entry is derived from the lock's value on the nodes,
// which is random for every lease. So if a node shows that value under the
// name, it is the same lock, still held, whichever address was used. The entry
// is a digest, since the value itself could release the lock.
const heldVariable = "REDLATCH_HELD"

// heldEntry is the entry of a value, for processes in this session: a process
// that left the session, as with setsid, does not keep CMD from ending, and may
// wait for its lock.
func heldEntry(value string) string {
	sum := sha256.Sum256([]byte(value))
	return fmt.Sprintf("%s@%d", hex.EncodeToString(sum[:16]), session())
}

// heldWith is the variable for a CMD that runs under more locks.
func heldWith(leases []*redlatch.Lease) string {
	text := os.Getenv(heldVariable)
	for _, l := range leases {
		text += " " + heldEntry(partsOf(l).Value)
	}
	return heldVariable + "=" + strings.TrimSpace(text)
}

// nested calls the function of that name on nodes that it opens, if there is
// anything to ask.
func (f *nodeFlags) nested(name string) error {
	if os.Getenv(heldVariable) == "" {
		return nil
	}
	again := *f
	again.say = nil
	nodes, err := again.open()
	if err != nil {
		return err
	}
	defer closeAll(nodes)
	return nested(name, nodes)
}

// nestedLimit is how long we ask nodes whether a lock is one that we run under.
// Without an answer the wait for the lock begins.
const nestedLimit = 2 * time.Second

// nested returns an error if the lock that we are about to wait for without
// limit is held by a redlatch under which we run, and which waits for us.
func nested(name string, nodes []redlatch.Node) error {
	entries := strings.Fields(os.Getenv(heldVariable))
	if len(entries) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), nestedLimit)
	defer cancel()
	values := make([][]string, len(nodes))
	var asked sync.WaitGroup
	for i, n := range nodes {
		asked.Go(func() {
			values[i] = valuesOn(ctx, n, name)
		})
	}
	asked.Wait()
	for _, value := range slices.Concat(values...) {
		if !slices.Contains(entries, heldEntry(value)) {
			continue
		}
		same := 0
		for _, others := range values {
			if slices.Contains(others, value) {
				same++
			}
		}
		if same <= len(nodes)/2 {
			continue // a remainder on a minority
		}
		_, owner, _ := strings.Cut(value, ":")
		return &outcome{code: exitUsage, event: "nested",
			err: fmt.Errorf("%q is held by %s, under which this command runs: locks are not re-entrant, and the wait would not end", name, harmless(owner)),
			// Not 75: a retry would not help.
			hint: "use another name for the inner lock, or one run for both"}
	}
	return nil
}

// valuesOn returns the values that hold a lock on a node: several if it has
// readers or slots. For those too the wait might not end: a writer that waits
// would be between the two runs, and all slots may be held by outer ones.
func valuesOn(ctx context.Context, n redlatch.Node, name string) []string {
	r, err := n.Do(ctx, node.Request{Op: node.OpInspect, Name: name})
	if err != nil || r.Status != node.Held {
		return nil
	}
	if lister, ok := n.(node.Lister); ok && r.Holders > 1 {
		if l, err := lister.Look(ctx, name); err == nil {
			values := make([]string, len(l.Holders))
			for i, h := range l.Holders {
				values[i] = h.Value
			}
			return values
		}
	}
	return []string{r.Value}
}
