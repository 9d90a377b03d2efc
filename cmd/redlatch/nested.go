package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
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

// nestedLimit is how long we ask nodes whether a lock is one that we run under.
// Without an answer the wait for the lock begins.
const nestedLimit = 2 * time.Second

// nested returns an error if the lock that we are about to wait for without
// limit, as a reader if shared is set, is held by a redlatch under which we run, and
// which waits for us.
func nested(name string, nodes []redlatch.Node, shared bool) error {
	entries := strings.Fields(os.Getenv(heldVariable))
	if len(entries) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), nestedLimit)
	defer cancel()
	votes, readers := map[string]int{}, false
	for i, a := range inspect(ctx, nodes, name) {
		if a.Err != nil || a.Reply.Status != node.Held {
			continue
		}
		readers = a.Reply.Share.Mode == node.Shared
		for _, value := range valuesOn(ctx, nodes[i], name, a.Reply) {
			votes[value]++
		}
	}
	for value, count := range votes {
		if count <= len(nodes)/2 || !slices.Contains(entries, heldEntry(value)) {
			continue // a remainder on a minority, or another's
		}
		_, owner, _ := strings.Cut(value, ":")
		why := "locks are not re-entrant, and the wait would not end"
		if readers && !shared {
			why = "a reader cannot become a writer, because two readers that both wanted that would wait for each other"
		}
		return &outcome{code: exitUsage, event: "nested",
			err: fmt.Errorf("%q is held by %s, under which this command runs: %s", name, harmless(owner), why),
			// Not 75: a retry would not help.
			hint: "use another name for the inner lock, or one run for both"}
	}
	return nil
}

// valuesOn returns the values that hold a lock on a node, which replied r: several
// if it has readers or slots. For those too the wait might not end: a writer that waits
// would be between the two runs, and all slots may be held by outer ones.
func valuesOn(ctx context.Context, n redlatch.Node, name string, r node.Reply) []string {
	lister, ok := n.(node.Lister)
	if !ok || r.Holders <= 1 {
		return []string{r.Value}
	}
	l, err := lister.Look(ctx, name)
	if err != nil {
		return []string{r.Value}
	}
	var values []string
	for _, h := range l.Holders {
		values = append(values, h.Value)
	}
	return values
}
