package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

var must = check.Must

// holders are n that hold "res" together.
func holding(share node.Share, n int) (all []redlatch.Holder) {
	for i := range n {
		all = append(all, redlatch.Holder{Owner: "db1/812/cat" + strings.Repeat("+", i), Kind: redlatch.KindLease, Left: 8 * time.Second,
			Shared: share.Mode == node.Shared, Slots: int(share.Slots), Slot: int(share.Slot), Holders: n})
	}
	return all
}

var (
	readers = node.Share{Mode: node.Shared}
	slots   = node.Share{Mode: node.Slotted, Slots: 3}
)

func TestQuestionOfBreakNamesEveryReader(t *testing.T) {
	question := breakQuestion(&admin.LockState{Name: "res", Held: true, Holders: holding(readers, 3)})
	for _, want := range []string{"/cat, a reader, ", "/cat+, a reader, ", "/cat++, a reader, ", "\nBreak it for all 3 holders? [y/N] "} {
		if !strings.Contains(question, want) {
			t.Errorf("%q is not in\n%s", want, question)
		}
	}
}

// TestLockInsideOfAnyHolderIsNested: ours need not be the first of the holders.
func TestLockInsideOfAnyHolderIsNested(t *testing.T) {
	for _, share := range []node.Share{readers, slots} {
		nodes := memory.Nodes(3)
		values := []string{strings.Repeat("0", 32) + ":one", strings.Repeat("1", 32) + ":two", strings.Repeat("2", 32) + ":three"}
		for i, value := range values {
			for _, n := range nodes {
				token := node.Token(time.Now().UnixMicro() + int64(i))
				req := node.Request{Op: node.OpAcquire, Name: "res", Value: value, Share: share, TTL: time.Minute, Fencing: node.Fencing{Token: token, Window: time.Minute}}
				r, err := n.Do(t.Context(), req)
				if err != nil || r.Status != node.Granted {
					t.Fatal(r, err)
				}
			}
		}
		for _, value := range values {
			t.Setenv(heldVariable, heldEntry(value))
			err := nested("res", nodes, true)
			if err == nil || !strings.Contains(err.Error(), "is held by "+value[33:]+", under which") || outcomeOf(err).code != exitUsage {
				t.Errorf("%+v: inside of %s: %v", share, value, err)
			}
		}
		t.Setenv(heldVariable, heldEntry("another"))
		if err := nested("res", nodes, true); err != nil {
			t.Errorf("%+v: inside of another lock: %v", share, err)
		}
	}
}

func TestWaitingForReadersAndSlotsReadsWell(t *testing.T) {
	const begin, end = `redlatch: waiting for "res", 2nd in the queue (3s so far): `, "; it expires in 8s unless extended"
	for _, c := range []struct {
		ours    shareFlags
		holders []redlatch.Holder
		want    string
	}{
		{shareFlags{}, holding(readers, 1), "held by db1/812/cat (a reader)"},
		{shareFlags{}, holding(readers, 3), "held by db1/812/cat and 2 other readers"},
		{shareFlags{shared: true}, holding(node.Share{}, 1), "held by db1/812/cat"},
		{shareFlags{shared: true}, holding(readers, 3), "a writer is before us; held by db1/812/cat and 2 other readers"},
		{shareFlags{slots: 3}, holding(slots, 3), "held by db1/812/cat (slot 0 of 3) and in 2 other slots"},
		{shareFlags{slots: 3}, holding(slots, 1), "one that wants the whole lock is before us; held by db1/812/cat (slot 0 of 3)"},
		{shareFlags{}, holding(slots, 1), "held by db1/812/cat (slot 0 of 3)"},
	} {
		v := waitView{name: "res", share: c.ours, holders: c.holders, place: 2, waited: 3 * time.Second, nodes: 1}
		if got := v.line(); got != begin+c.want+end {
			t.Errorf("got  %s\nwant %s", got, begin+c.want+end)
		}
	}
	err := &redlatch.HeldError{Name: "res", Holders: holding(readers, 2)}
	f := &runFlags{lockFlags: lockFlags{shareFlags: shareFlags{shared: true}, noWait: true}, conflictCode: exitHeld}
	if got := f.refused(err, 0).hint; got != "a writer is before us; give -w 30s instead of -n to wait for it" {
		t.Errorf("the hint is %q", got)
	}
}
