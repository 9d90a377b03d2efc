package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
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

// waitFor has a client wait for "res" until the test ends.
func waitFor(t *testing.T, nodes []redlatch.Node, opts redlatch.LockOptions, label string) {
	t.Helper()
	c := clientOn(t, nodes, label)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Lock(ctx, "res", &opts)
	}()
	t.Cleanup(func() { cancel(); <-done })
	for range 1000 {
		s, err := admin.New(c).Show(t.Context(), "res")
		if err == nil && slices.ContainsFunc(s.Waiters, func(w admin.WaiterState) bool {
			return strings.HasSuffix(w.Owner, "/"+label) && w.Nodes == len(nodes)
		}) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s does not wait", label)
}

func shown(t *testing.T, nodes []redlatch.Node) *admin.LockState {
	t.Helper()
	s, err := admin.New(clientOn(t, nodes, "operator")).Show(t.Context(), "res")
	must(t, err)
	return s
}

// wantLines fails unless each pattern matches a line of a text.
func wantLines(t *testing.T, what, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(`(?m)^` + p + `$`).MatchString(text) {
			t.Errorf("%s does not match %s:\n%s", what, p, text)
		}
	}
}

func TestReadersAreListedShownAndBroken(t *testing.T) {
	nodes := memory.Nodes(3)
	leases := locked(t, nodes, redlatch.LockOptions{Shared: true}, "one", "two", "three")
	waitFor(t, nodes, redlatch.LockOptions{}, "writer")
	waitFor(t, nodes, redlatch.LockOptions{Shared: true}, "late")
	s := shown(t, nodes)

	var out bytes.Buffer
	must(t, writeLocks(&out, &reporter{}, []admin.LockState{*s}))
	wantLines(t, "ls", out.String(), `res +held +3 readers: \S+/one, … +20.* ago\) +\S+s +2 +3/3`)

	out.Reset()
	must(t, writeState(&out, s))
	wantLines(t, "show", out.String(),
		`state +held: 3 readers`,
		`holder +\S+/one, a reader, since 20\S+ \(\d+s ago\), expires in \S+s unless extended, on 3 of 3 nodes`,
		`holder +\S+/two, a reader, .*`,
		`holder +\S+/three, a reader, .*`,
		`token +`+tokenText(leases[1].Token()),
		`waiting +2 clients`,
		`  1\. +\S+/writer, for the whole lock, since \S+, on 3 of 3 nodes`,
		`  2\. +\S+/late, as a reader, since .*`,
		`memory:1 +\S+/one and 2 more +\S+s +\d{16} +\d{16} +2`)

	text, err := json.Marshal(stateJSON(s, true))
	must(t, err)
	wantLines(t, "JSON", string(text),
		`\{"name":"res","state":"held","holders":\[\{"owner":"\S+/one","kind":"lease","token":"\d{16}","shared":true,"holders":3,"since":"20[^"]*Z",.*`,
		`.*"waiters":\[\{"owner":"\S+/writer","since":"20[^"]*Z","nodes":3\},\{"owner":"\S+/late","shared":true,"since":.*`,
		`.*\{"node":"memory:1","owner":"\S+/one","holders":3,"expires_in_ms":.*`)

	question := breakQuestion(s)
	wantLines(t, "the question", question,
		`"res" is held by \S+/one, a reader, since .*, on 3 of 3 nodes; token \d{16}\.`,
		`"res" is held by \S+/three, a reader, .*`,
		`The former holders are not stopped: .*`,
		`Break it for all 3 holders\? \[y/N\] `)
	out.Reset()
	report, err := admin.New(clientOn(t, nodes, "operator")).Break(t.Context(), "res", &admin.BreakOptions{Seen: s.Seen()})
	must(t, err)
	must(t, writeBreak(&out, &reporter{}, "res", s, report, true))
	wantLines(t, "break", out.String(),
		`"res" is broken on 3 of 3 nodes, for 3 holders: \S+/one, \S+/two, \S+/three; the next token is above \d{16}`)
}

func TestSlotsAreListedAndShown(t *testing.T) {
	nodes := memory.Nodes(1)
	leases := locked(t, nodes, redlatch.LockOptions{Slots: 3}, "one", "two")
	waitFor(t, nodes, redlatch.LockOptions{}, "whole")
	waitFor(t, nodes, redlatch.LockOptions{Slots: 3}, "next")
	s := shown(t, nodes)
	var out bytes.Buffer
	must(t, errors.Join(writeLocks(&out, &reporter{}, []admin.LockState{*s}), writeState(&out, s)))
	wantLines(t, "ls and show", out.String(),
		`res +held +2 of 3 slots: \S+/one, … +20.* ago\) +\S+s +2 +1/1`,
		`state +held: 2 of 3 slots`,
		`holder +\S+/one, slot 0 of 3, since .*`,
		`holder +\S+/two, slot 1 of 3, since .*`,
		`  1\. +\S+/whole, for the whole lock, since .*`,
		`  2\. +\S+/next, for one of 3 slots, since .*`)
	text, err := json.Marshal(stateJSON(s, true))
	must(t, err)
	wantLines(t, "JSON", string(text),
		`.*"owner":"\S+/one","kind":"lease","token":"\d{16}","slots":3,"slot":0,"holders":2,"since".*`,
		`.*"owner":"\S+/next","slots":3,"since":.*`)

	// One holder reads well too.
	must(t, leases[0].Release(t.Context()))
	alone := shown(t, nodes)
	if got := columnText(alone.Holders[0]); !strings.HasPrefix(got, "1 of 3 slots: ") || !strings.HasSuffix(got, "/two") {
		t.Errorf("a single slot is listed as %q", got)
	}
	if got := breakQuestion(alone); !strings.Contains(got, "/two, slot 1 of 3, ") || !strings.HasSuffix(got, "\nBreak it? [y/N] ") {
		t.Errorf("the question is %q", got)
	}
}

func TestLeaseSaysItsShareToCMDAndInJSON(t *testing.T) {
	t.Setenv(slotVariable, "")
	slots := locked(t, memory.Nodes(1), redlatch.LockOptions{Slots: 2}, "one", "two")
	reader := locked(t, memory.Nodes(1), redlatch.LockOptions{Shared: true}, "reader")[0]
	plain := locked(t, memory.Nodes(1), redlatch.LockOptions{}, "plain")[0]
	for i, l := range slots {
		if got := leaseVariables(l); got[len(got)-1] != "REDLATCH_SLOT="+strconv.Itoa(i) {
			t.Errorf("slot %d: CMD gets %q", i, got)
		}
	}
	for l, want := range map[*redlatch.Lease]string{
		slots[0]: `{"slots":2,"slot":0}`, slots[1]: `{"slots":2,"slot":1}`, reader: `{"shared":true}`, plain: `{}`,
	} {
		if got, err := json.Marshal(shareOf(l)); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	for _, l := range []*redlatch.Lease{reader, plain} {
		if got := leaseVariables(l); len(got) != 4 {
			t.Errorf("without slots CMD gets %q", got)
		}
	}
	// The slot of an outer run is not that of the inner one.
	t.Setenv(slotVariable, "1")
	if got := leaseVariables(plain); got[len(got)-1] != "REDLATCH_SLOT=" {
		t.Errorf("inside of a slot CMD gets %q", got)
	}
	var out bytes.Buffer
	if err := (&nodeFlags{}).writeLease(&out, &reporter{json: true}, slots[1], nil); err != nil || !strings.Contains(out.String(), `"slots":2,"slot":1,`) {
		t.Errorf("%v, %s", err, out.String())
	}
	out.Reset()
	(&reporter{w: &out, json: true}).end(&outcome{event: "exited", run: &runFacts{leases: slots[1:]}})
	if !strings.Contains(out.String(), `"slots":2,"slot":1,`) {
		t.Errorf("a run ends with %s", out.String())
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

func TestOtherNumberOfSlotsNamesTheFlag(t *testing.T) {
	nodes := memory.Nodes(1)
	locked(t, nodes, redlatch.LockOptions{Slots: 3}, "one")
	_, err := clientOn(t, nodes, "other").TryLock(t.Context(), "res", &redlatch.LockOptions{Slots: 4})
	end := outcomeOf(err)
	if got := message(end.err) + "; " + end.hint; end.code != exitUsage ||
		got != `--slots is 4: must be 3: "res" is held with 3 slots; all that use a name must give the same --slots` {
		t.Errorf("exit %d, %s", end.code, got)
	}
}
