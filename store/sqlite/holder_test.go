package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

func asReader(req node.Request) node.Request {
	req.Share = node.Share{Mode: node.Shared}
	return req
}

// TestOnly64WaitersAreLookedAt has readers at the head that could all be granted.
// A reader with 64 of them before it is granted; the next one is not.
func TestOnly64WaitersAreLookedAt(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond)
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), timekeeper{wall: func() time.Time { return now }})
	server := nodestate.Server{Silent: true}
	both := func(req node.Request) node.Reply {
		t.Helper()
		want, _ := server.Apply(now, req)
		want.Wakes, want.Left = false, 0
		got := do(t, n, req)
		if got.Left = 0; got != want {
			t.Fatalf("%v by %s: the answer is\n%+v, want\n%+v", req.Op, req.Value, got, want)
		}
		return got
	}
	reader := func(i int) node.Request {
		req := asReader(request(node.OpAcquire, "name", fmt.Sprintf("reader %02d", i)))
		req.Wait, req.Ticket = true, int64(i)
		return req
	}
	both(request(node.OpAcquire, "name", "writer"))
	for i := range 70 {
		both(reader(i))
	}
	both(request(node.OpRelease, "name", "writer"))
	if r := both(reader(65)); r.Status != node.Reserved || r.Rank != 66 {
		t.Errorf("with 65 before it: %v, rank %d", r.Status, r.Rank)
	}
	both(asReader(request(node.OpAcquire, "name", "passer-by")))
	if r := both(reader(64)); r.Status != node.Granted {
		t.Errorf("with 64 before it: %v", r.Status)
	}
}

// TestAWaitingReaderIsAnsweredWithoutAWrite has another process in the middle of
// writing. The reader waits behind a writer, and beside a reader that holds.
func TestAWaitingReaderIsAnsweredWithoutAWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	now := time.Now().Truncate(time.Microsecond)
	k := timekeeper{wall: func() time.Time { return now }}
	n, other := mustOpen(t, path, k), mustOpen(t, path, k)
	do(t, n, asReader(request(node.OpAcquire, "name", "holder")))
	writer := request(node.OpAcquire, "name", "writer")
	writer.Wait, writer.Ticket = true, 1
	do(t, n, writer)
	reader := asReader(request(node.OpAcquire, "name", "reader"))
	reader.Wait, reader.Ticket = true, 2
	first := do(t, n, reader)
	if first.Status != node.Held || first.Value != "holder" || first.Share.Mode != node.Shared || first.Rank != 2 {
		t.Errorf("the answer is %+v", first)
	}
	end, err := beginWrite(other)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if again, err := n.Do(ctx, reader); err != nil || again != first {
		t.Errorf("the answer was %+v at first, and then %+v, %v", first, again, err)
	}
}

// TestAWriterThatIsGoneDelaysReadersForItsLeaseAlone has a writer at the head
// that came in behind another, and so had a long place.
func TestAWriterThatIsGoneDelaysReadersForItsLeaseAlone(t *testing.T) {
	q := newQueue(t)
	q.want(node.Granted, node.OpAcquire, "holder", 0)
	q.want(node.Held, node.OpAcquire, "first", 1)
	q.want(node.Held, node.OpAcquire, "gone", 2)
	q.want(node.Granted, node.OpRelease, "holder", 0)
	q.want(node.Granted, node.OpAcquire, "first", 1)
	down := asReader(request(node.OpExtend, "job", "first"))
	if r := do(t, q.n, down); r.Status != node.Granted {
		t.Fatal(r.Status)
	}
	reader := asReader(request(node.OpAcquire, "job", "reader"))
	reader.Wait, reader.Ticket = true, 3
	for _, want := range []node.Status{node.Held, node.Held, node.Granted} {
		if r := do(t, q.n, reader); r.Status != want {
			t.Errorf("the reader: %v, want %v", r.Status, want)
		}
		q.now = q.now.Add(node.WaiterLease/2 + time.Millisecond)
	}
}

func TestReadersDoNotFillTheFile(t *testing.T) {
	m := newTestTime()
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), m.timekeeper())
	const times, alive = 5000, 30
	for i := range times {
		// Half of them have a name of their own, and the others share a few.
		name := fmt.Sprint("name ", i)
		if i%2 == 0 {
			name = fmt.Sprint("shared ", i%20)
		}
		req := asReader(withToken(request(node.OpAcquire, name, fmt.Sprint("reader ", i)), m.token()))
		req.Retention, req.TTL = alive*time.Second, alive*time.Second
		if r := do(t, n, req); r.Status != node.Granted {
			t.Fatal(r.Status)
		}
		m.pass(time.Second)
	}
	const most = alive + times/5 // sweeps come at random
	if rows := countRows(t, n); rows > most {
		t.Errorf("%d rows are in the file after %d readers of which %d are alive", rows, times, alive)
	}
	m.pass(time.Hour)
	sweepAll(t, n)
	if rows := countRows(t, n); rows != 0 {
		t.Errorf("%d rows are left", rows)
	}
}

func TestAReaderWithoutATokenLeavesNothingBehind(t *testing.T) {
	m := newTestTime()
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), m.timekeeper())
	for _, who := range []string{"one", "two"} {
		do(t, n, asReader(request(node.OpAcquire, "name", who)))
	}
	for _, who := range []string{"one", "two"} {
		do(t, n, asReader(request(node.OpRelease, "name", who)))
	}
	m.pass(time.Minute)
	sweepAll(t, n)
	if rows := countRows(t, n); rows != 0 {
		t.Errorf("%d rows are left", rows)
	}
}

func TestARebootEndsReadersButNotTheirFence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	m := newTestTime()
	n := mustOpen(t, path, m.timekeeper())
	old := m.token()
	do(t, n, asReader(withToken(request(node.OpAcquire, "name", "one"), old)))
	do(t, n, asReader(withToken(request(node.OpAcquire, "name", "two"), old+1)))
	m.boot, m.elapsed = "second boot", time.Second
	n = mustOpen(t, path, m.timekeeper())
	l, err := n.Look(context.Background(), "name")
	if err != nil || l.Reply.Status != node.Absent || len(l.Holders) != 0 {
		t.Errorf("after a reboot: %+v, %v", l, err)
	}
	if r := do(t, n, withToken(request(node.OpAcquire, "name", "writer"), old+1)); r.Status != node.Stale {
		t.Errorf("with a reader's token from before the reboot: %v", r.Status)
	}
	if r := do(t, n, withToken(request(node.OpAcquire, "name", "writer"), old+2)); r.Status != node.Granted {
		t.Errorf("with a higher token: %v", r.Status)
	}
}

// TestAForgottenFloorStaysInForce has a name that was swept. A reader's token must
// be above what was granted before, and a second reader's too.
func TestAForgottenFloorStaysInForce(t *testing.T) {
	m := newTestTime()
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), m.timekeeper())
	old := m.token()
	do(t, n, withToken(request(node.OpAcquire, "name", "writer"), old))
	m.pass(2 * time.Hour)
	sweepAll(t, n)
	m.wall = m.wall.Add(-2 * time.Hour)
	expect := func(want node.Status, who string, token node.Token) {
		t.Helper()
		if r := do(t, n, asReader(withToken(request(node.OpAcquire, "name", who), token))); r.Status != want {
			t.Errorf("%s with %d above the writer's token: %v, want %v", who, int64(token)-int64(old), r.Status, want)
		}
	}
	expect(node.Stale, "one", old)
	expect(node.Granted, "one", old+5)
	expect(node.Stale, "two", old)
	expect(node.Granted, "two", old+1)
}

func TestAListHasAllHolders(t *testing.T) {
	m := newTestTime()
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), m.timekeeper())
	token := m.token()
	do(t, n, withToken(request(node.OpAcquire, "exclusive", "one"), token))
	do(t, n, asReader(withToken(request(node.OpAcquire, "shared", "one"), token)))
	do(t, n, asReader(withToken(request(node.OpAcquire, "shared", "two"), token+1)))
	all := map[string]node.Listing{}
	if err := n.List(context.Background(), "", func(l node.Listing) { all[l.Name] = l }); err != nil {
		t.Fatal(err)
	}
	until := m.wall.Add(time.Minute)
	reader := node.Share{Mode: node.Shared}
	for name, want := range map[string][]node.Holder{
		"exclusive": {{Value: "one", Token: token, Until: until}},
		"shared":    {{Value: "one", Token: token, Until: until, Share: reader}, {Value: "two", Token: token + 1, Until: until, Share: reader}},
	} {
		l := all[name]
		if !slices.EqualFunc(l.Holders, want, sameHolder) || l.Reply.Holders != len(want) || l.Reply.Share != want[0].Share || l.Reply.Left != time.Minute {
			t.Errorf("%s is listed as %+v", name, l)
		}
		if looked, err := n.Look(context.Background(), name); err != nil || !slices.EqualFunc(looked.Holders, want, sameHolder) || looked.Reply != l.Reply {
			t.Errorf("%s is listed as %+v, but a look says %+v, %v", name, l, looked, err)
		}
	}
}

// mix takes a name in all modes, and leaves a file in a folder while it has it.
// It fails if it finds a file of a holder that it conflicts with.
func mix(n *Node, folder string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for i := range 60 {
		req := request(node.OpAcquire, "name", fmt.Sprintf("process %d time %d", os.Getpid(), i))
		req.Share = []node.Share{{}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 2}, {Mode: node.Slotted, Slots: 3}}[(os.Getpid()+i/3)%4]
		req.Wait, req.Ticket = true, time.Now().UnixMicro()
		if _, err := untilGranted(ctx, n, &req); err != nil {
			return err
		}
		l, err := n.Look(ctx, "name")
		if err != nil {
			return err
		}
		own := slices.IndexFunc(l.Holders, func(h node.Holder) bool { return h.Value == req.Value })
		if own < 0 {
			return fmt.Errorf("%s is not among %+v", req.Value, l.Holders)
		}
		req.Slot = l.Holders[own].Slot
		mark := filepath.Join(folder, fmt.Sprintf("%s-%d-%d", req.Kind(), req.Slot, os.Getpid()))
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			return err
		}
		others, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, o := range others {
			kind, rest, _ := strings.Cut(o.Name(), "-")
			slot, _, _ := strings.Cut(rest, "-")
			if o.Name() == filepath.Base(mark) || kind == "r" && req.Kind() == "r" ||
				kind == req.Kind() && req.Mode == node.Slotted && slot != fmt.Sprint(req.Slot) {
				continue
			}
			return fmt.Errorf("%v beside %s", req.Share, o.Name())
		}
		if err := os.Remove(mark); err != nil {
			return err
		}
		req.Op = node.OpRelease
		req.Token++
		if r, err := n.Do(ctx, req); err != nil || r.Status != node.Granted {
			return fmt.Errorf("release: %v, %w", r.Status, err)
		}
	}
	return nil
}

func TestProcessesOfAllModesExcludeEachOther(t *testing.T) {
	dir := t.TempDir()
	marks := filepath.Join(dir, "marks")
	if err := os.Mkdir(marks, 0o700); err != nil {
		t.Fatal(err)
	}
	var all []*process
	for range 6 {
		all = append(all, start(t, "mix", filepath.Join(dir, "locks.db"), marks))
	}
	for _, p := range all {
		p.begin()
	}
	for _, p := range all {
		p.finish()
	}
}
