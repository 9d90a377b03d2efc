package main

import (
	"context"
	"slices"
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

func clientOn(t *testing.T, nodes []redlatch.Node, label string) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New(nodes, &redlatch.Options{Label: label})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// locked takes the lock "res" for each label, and returns the leases.
func locked(t *testing.T, nodes []redlatch.Node, opts redlatch.LockOptions, labels ...string) []*redlatch.Lease {
	t.Helper()
	var all []*redlatch.Lease
	for _, label := range labels {
		l, err := clientOn(t, nodes, label).Lock(t.Context(), "res", &opts)
		must(t, err)
		all = append(all, l)
		for _, n := range nodes { // the last one may still be asked
			if !slices.Contains(valuesSoon(n, partsOf(l).Value), partsOf(l).Value) {
				t.Fatalf("%v does not have %s", n, label)
			}
		}
	}
	return all
}

// valuesSoon waits until a node names a value as a holder of "res".
func valuesSoon(n redlatch.Node, value string) []string {
	for range 1000 {
		r, err := n.Do(context.Background(), node.Request{Op: node.OpInspect, Name: "res"})
		if values := valuesOn(context.Background(), n, "res", r); err == nil && slices.Contains(values, value) {
			return values
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func TestQuestionOfBreakNamesEveryReader(t *testing.T) {
	nodes := memory.Nodes(3)
	locked(t, nodes, redlatch.LockOptions{Shared: true}, "one", "two", "three")
	s, err := admin.New(clientOn(t, nodes, "operator")).Show(t.Context(), "res")
	must(t, err)
	question := breakQuestion(s)
	for _, want := range []string{`/one, a reader, since `, `/two, a reader, since `, `/three, a reader, since `, "\nBreak it for all 3 holders? [y/N] "} {
		if !strings.Contains(question, want) {
			t.Errorf("%q is not in\n%s", want, question)
		}
	}
}

// TestLockInsideOfAnyHolderIsNested: ours need not be the first of the holders.
func TestLockInsideOfAnyHolderIsNested(t *testing.T) {
	for _, opts := range []redlatch.LockOptions{{Shared: true}, {Slots: 3}} {
		nodes := memory.Nodes(3)
		for _, l := range locked(t, nodes, opts, "one", "two", "three") {
			t.Setenv(heldVariable, heldEntry(partsOf(l).Value))
			err := nested("res", nodes, true)
			if err == nil || !strings.Contains(err.Error(), l.Owner()) || outcomeOf(err).code != exitUsage {
				t.Errorf("%+v: inside of %s: %v", opts, l.Owner(), err)
			}
		}
		t.Setenv(heldVariable, heldEntry("another"))
		if err := nested("res", nodes, true); err != nil {
			t.Errorf("%+v: inside of another lock: %v", opts, err)
		}
	}
}

func TestWaitingForReadersAndSlotsReadsWell(t *testing.T) {
	held := func(share node.Share, holders int) []redlatch.Holder {
		value := strings.Repeat("0", 32) + ":db1/812/cat"
		return []redlatch.Holder{{Owner: strings.TrimPrefix(value, strings.Repeat("0", 32)+":"), Kind: redlatch.KindLease, Left: 8 * time.Second,
			Shared: share.Mode == node.Shared, Slots: int(share.Slots), Slot: int(share.Slot), Holders: holders}}
	}
	readers, slots := node.Share{Mode: node.Shared}, node.Share{Mode: node.Slotted, Slots: 3}
	const begin, end = `redlatch: waiting for "res", 2nd in the queue (3s so far): `, "; it expires in 8s unless extended"
	for _, c := range []struct {
		ours    shareFlags
		holders []redlatch.Holder
		want    string
	}{
		{shareFlags{}, held(readers, 1), "held by db1/812/cat (a reader)"},
		{shareFlags{}, held(readers, 3), "held by db1/812/cat and 2 other readers"},
		{shareFlags{shared: true}, held(node.Share{}, 1), "held by db1/812/cat"},
		{shareFlags{shared: true}, held(readers, 3), "a writer is before us; held by db1/812/cat and 2 other readers"},
		{shareFlags{slots: 3}, held(slots, 3), "held by db1/812/cat (slot 0 of 3) and in 2 other slots"},
		{shareFlags{slots: 3}, held(slots, 1), "one that wants the whole lock is before us; held by db1/812/cat (slot 0 of 3)"},
		{shareFlags{}, held(slots, 1), "held by db1/812/cat (slot 0 of 3)"},
	} {
		v := waitView{name: "res", share: c.ours, holders: c.holders, place: 2, waited: 3 * time.Second, nodes: 1}
		if got := v.line(); got != begin+c.want+end {
			t.Errorf("got  %s\nwant %s", got, begin+c.want+end)
		}
	}
	err := &redlatch.HeldError{Name: "res", Holders: held(readers, 2)}
	f := &runFlags{lockFlags: lockFlags{shareFlags: shareFlags{shared: true}, noWait: true}, conflictCode: exitHeld}
	if got := f.refused(err, 0).hint; got != "a writer is before us; give -w 30s instead of -n to wait for it" {
		t.Errorf("the hint is %q", got)
	}
}
