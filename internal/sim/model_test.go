//go:build unix

package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/redis/direct"
)

// TestModelAnswersAsARealServer sends sequences of random requests to a real
// server and to its model, whose clock is set to the server's each time. They
// must give the same answers, and notify the same waiters.
func TestModelAnswersAsARealServer(t *testing.T) {
	from, count := seeds(t, 1, 60)
	server := redistest.Start(t, 1)[0]
	for w := range uint64(8) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			n := realNode(t, server.URL())
			whole, steps := 0, 0
			// A sequence that comes near the edge of a time to live, or waits
			// long for an answer, ends there: a busy machine runs more of them, until one reached its end or as
			// many requests were compared as in ten that do.
			for seed := from + w; seed < from+count || whole == 0 && steps < 10*duelSteps && seed < from+200*count; seed += 8 {
				d := newDuel(t, n, fmt.Sprintf("duel/%d", seed), seed)
				if d.fight(nil) {
					whole++
				}
				steps += len(d.log)
			}
			t.Logf("%d whole sequences, %d requests compared", whole, steps)
			if whole == 0 && steps < 10*duelSteps {
				t.Errorf("no sequence reached its end, and %d requests were compared", steps)
			}
		})
	}
}

// TestModelIsGuardedAsARealServer does the same with the guard on, and flushes
// both in between.
func TestModelIsGuardedAsARealServer(t *testing.T) {
	from, count := seeds(t, 1, 6)
	for seed := from; seed < from+min(count, 200); seed++ {
		server := redistest.Start(t, 1)[0]
		n := realNode(t, server.URL())
		s := &stream{dice: dice(mix(seed))}
		guard := &node.Guard{List: "0123456789abcdef", Nodes: "a b c", MaxTTL: time.Second,
			Window: 2 * time.Second, Quarantine: s.between(50*time.Millisecond, 500*time.Millisecond).Truncate(time.Millisecond)}
		d := newDuel(t, n, "guarded", seed)
		d.flush = func() { server.Do("FLUSHALL") }
		d.fight(guard)
	}
}

func realNode(t *testing.T, url string) *watched {
	t.Helper()
	nodes, err := direct.Nodes(url)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Node: nodes[0]}
	t.Cleanup(func() { nodes[0].Close() })
	t.Cleanup(nodes[0].(node.Waker).Listen(w.hear))
	// No request is queued before notifications can arrive.
	for value, deadline := "primer", time.Now().Add(20*time.Second); ; time.Sleep(5 * time.Millisecond) {
		for _, v := range []string{"holder", value} {
			r, err := w.Do(context.Background(), node.Request{Op: node.OpAcquire, Name: "primer", Value: v,
				TTL: time.Minute, Wait: v == value, Ticket: time.Now().UnixMicro()})
			if err != nil {
				t.Fatal(err)
			}
			if r.Wakes {
				return w
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("wakes do not come")
		}
	}
}

// watched is a real node, and its notifications.
type watched struct {
	node.Node
	mu    sync.Mutex
	wakes []string
}

func (w *watched) hear(wake node.Wake) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wakes = append(w.wakes, described(wake))
}

func described(w node.Wake) string { return fmt.Sprintf("%d %s %d", w.Kind, w.Value, w.Fence) }

// duel is a real server and its model.
type duel struct {
	t     *testing.T
	name  string
	s     *stream
	real  *watched
	model *Server
	began time.Time
	now   time.Time
	fence node.Token
	plain bool // without tokens
	wakes []string
	edges []time.Time // when something expires
	flush func()
	log   []string
	kinds [6]node.Share // what each value waits for
	crowd bool          // most requests wait, and few tokens are refused
}

func newDuel(t *testing.T, real *watched, name string, seed uint64) *duel {
	d := &duel{t: t, name: name, s: &stream{dice: dice(mix(seed))}, real: real, began: time.Now()}
	d.plain = d.s.one(6)
	if !d.s.one(3) {
		// Few kinds, so that some share.
		some := []node.Share{{}, {Mode: node.Shared}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 2}, {Mode: node.Slotted, Slots: 3}}
		a, b := some[d.s.intn(len(some))], some[1+d.s.intn(len(some)-1)]
		for i := range d.kinds {
			d.kinds[i] = []node.Share{a, b, b}[d.s.intn(3)]
		}
		d.crowd = !d.s.one(3)
	}
	d.model = NewServer("model", func() time.Time { return d.now }, false)
	d.model.tell = func(w node.Wake) { d.wakes = append(d.wakes, described(w)) }
	return d
}

const (
	duelWindow = 2 * time.Second
	duelSteps  = 60 // the requests of a sequence
)

// fight sends one sequence of requests, and reports whether it reached its end.
func (d *duel) fight(guard *node.Guard) bool {
	for range duelSteps {
		if guard != nil && d.s.one(12) {
			d.flush()
			d.model.flush()
			d.log = append(d.log, "flush")
		}
		if d.s.one(10) {
			// Shorter than a notification is valid, or longer.
			time.Sleep([]time.Duration{170 * time.Millisecond, 380 * time.Millisecond}[d.s.intn(4)/3])
		}
		req := d.request()
		if guard != nil && req.Op != node.OpOffer {
			req.Guard = guard
			if d.s.one(6) {
				marks := []node.Mark{node.MarkRead, node.MarkRead, node.MarkWrite, node.MarkWrite, node.MarkWrite, node.MarkFresh, node.MarkReplace, node.MarkBar}
				req = node.Request{Op: node.OpMark, Mark: marks[d.s.intn(len(marks))], Guard: guard,
					TTL:   []time.Duration{0, 0, 2 * guard.Quarantine}[d.s.intn(3)],
					Until: []time.Time{{}, time.Now().Add(time.Hour), time.Now().Add(-time.Hour)}[d.s.intn(3)]}
			}
			other := *guard
			other.Off = req.Op != node.OpMark && d.s.one(5)
			if d.s.one(10) {
				other.List = "fedcba9876543210"
			}
			if other != *guard {
				req.Guard = &other
			}
		}
		if !d.step(req) {
			return false
		}
		if d.s.one(8) && !d.sameListing() {
			return false
		}
	}
	return d.sameListing() && d.sameWakes()
}

// request makes up a request about few values, so that they collide.
func (d *duel) request() node.Request {
	s, now := d.s, time.Now()
	ops := []node.Op{node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpRelease, node.OpRelease,
		node.OpExtend, node.OpOffer, node.OpRepair, node.OpInspect, node.OpBreak}
	if d.crowd {
		ops = []node.Op{node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire,
			node.OpRelease, node.OpRelease, node.OpRelease, node.OpOffer, node.OpOffer, node.OpExtend, node.OpRepair, ops[s.intn(len(ops))]}
	}
	who := s.intn(6)
	req := node.Request{
		Op: ops[s.intn(len(ops))], Name: d.name, Value: fmt.Sprintf("%032x:%s", who, d.name),
		TTL: []time.Duration{100 * time.Millisecond, time.Hour}[s.intn(4)/3], Window: duelWindow, Retention: time.Hour,
		Ticket: d.began.Add(time.Duration(who*2%3) * time.Second).UnixMicro(), // two have the same
	}
	far := duelWindow + 700*time.Millisecond
	req.Token = []node.Token{
		node.Token(now.UnixMicro()), node.Token(now.UnixMicro()), d.fence + 1, d.fence + 1, d.fence, d.fence - min(d.fence, 1),
		node.Token(now.Add(far).UnixMicro()), node.Token(now.Add(-far).UnixMicro()),
	}[s.intn(8)]
	if d.crowd && !s.one(5) {
		req.Token = max(d.fence+1, node.Token(now.UnixMicro()))
	}
	if d.plain {
		req.Token = 0
		if req.Op == node.OpRepair {
			req.Op = node.OpInspect // without tokens nothing is repaired
		}
	}
	req.Share = d.kinds[who]
	if d.kinds != [6]node.Share{} && req.Op != node.OpOffer && s.one(6) {
		// A value waits for one kind alone.
		other := []node.Share{{}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 2}, {Mode: node.Slotted, Slots: 3}}[s.intn(4)]
		if req.Op != node.OpAcquire || who == 3 {
			req.Share = other
		}
	}
	if req.Mode == node.Slotted {
		req.Slot = uint8(s.intn(int(req.Slots)))
	}
	switch req.Op {
	case node.OpAcquire:
		req.Wait, req.Barge = who != 3, who > 1 && !d.crowd || who == 5 // the same in all its requests
		if s.one(8) {
			req.Token = 0 // like a client without tokens, beside clients with tokens
		}
	case node.OpOffer:
		req.Wait = true
	case node.OpRelease:
		req.Once = s.one(3)
	case node.OpRepair:
		req.Token = max(req.Token, 1)
		req.Until = []time.Time{{}, now.Add(time.Hour), now.Add(-time.Hour)}[s.intn(3)]
		req.Seen = []time.Time{{}, now.Add(time.Hour), now.Add(-s.between(0, 50*time.Millisecond)), now.Add(-s.between(0, time.Second))}[s.intn(4)]
	case node.OpBreak:
		req.Value, req.Share = "", node.Share{}
	case node.OpInspect:
		req.Share = node.Share{}
	}
	return req
}

// step sends a request to both. It reports false if the time is too near an
// edge for the answers to be compared.
func (d *duel) step(req node.Request) bool {
	sent := time.Now()
	real, err := d.real.Do(context.Background(), req)
	if err != nil {
		d.t.Fatalf("%+v: %v", req, err)
	}
	if time.Since(sent) > 30*time.Millisecond {
		return false // the server may have stood still between two of its clock readings
	}
	for _, e := range d.edges {
		if e.Sub(real.Now).Abs() < 40*time.Millisecond {
			return false
		}
	}
	d.now = real.Now
	model, err := d.model.Do(req)
	if err != nil {
		d.t.Fatalf("the model on %+v: %v", req, err)
	}
	d.fence = max(d.fence, model.Fence)
	d.edges = append(d.edges, d.now.Add(req.TTL), d.now.Add(node.WaiterLease), d.now.Add(node.TurnLease), d.now.Add(node.TurnLease/6))
	if g := req.Guard; g != nil {
		d.edges = append(d.edges, d.now.Add(g.Quarantine))
	}
	d.log = append(d.log, fmt.Sprintf("%v %v %.32s %v token %d ticket %d wait %v barge %v once %v guard %v: %v", d.now.UnixMicro(), req.Op, req.Value, req.Share,
		req.Token, req.Ticket, req.Wait, req.Barge, req.Once, req.Guard != nil, real.Status))
	if a, b := essence(req, real), essence(req, model); a != b {
		d.t.Fatalf("the server says %s, the model %s, to the last of:\n%s", a, b, joined(d.log))
	}
	if off := real.Left - model.Left; off.Abs() > 30*time.Millisecond {
		d.t.Fatalf("the server says %v yet, the model %v, to the last of:\n%s", real.Left, model.Left, joined(d.log))
	}
	return true
}

// essence is what is compared of a reply.
func essence(req node.Request, r node.Reply) string {
	text := fmt.Sprintf("%v, holder or reason %q", r.Status, r.Value)
	// To an extension a server repeats the token that it was sent.
	if req.Token != 0 && req.Op != node.OpExtend && r.Status != node.Quarantined && r.Status != node.Misconfigured {
		text += fmt.Sprintf(", fence %d", r.Fence)
	}
	if r.Status == node.Held && (req.Token != 0 || req.Op == node.OpAcquire || req.Op == node.OpInspect) {
		text += fmt.Sprintf(", holder's token %d", r.HolderToken)
	}
	if r.Status == node.Held || r.Status == node.Granted && req.Op == node.OpAcquire {
		text += fmt.Sprintf(", %v of %d holders, free %b", r.Share, r.Holders, r.Free)
	}
	if r.Status != node.Granted && req.Wait {
		text += fmt.Sprintf(", place %d", r.Rank)
	}
	if r.Guard != nil {
		text += ", list " + r.Guard.List
	}
	return text
}

// sameListing compares the holders and the queue of both. It reports false if
// the time is too near an edge.
func (d *duel) sameListing() bool {
	real, err := d.real.Node.(node.Lister).Look(context.Background(), d.name)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range d.edges {
		if e.Sub(real.Reply.Now).Abs() < 40*time.Millisecond {
			return false
		}
	}
	model := d.model.state.Look(real.Reply.Now, d.name)
	show := func(l node.Listing) (text string) {
		for _, h := range l.Holders {
			text += fmt.Sprintf("  holder %.32s %v with %d\n", h.Value, h.Share, h.Token)
		}
		for _, w := range l.Waiters {
			text += fmt.Sprintf("  waiter %.32s %v with %d\n", w.Value, w.Share, w.Ticket)
		}
		return text
	}
	if a, b := show(real), show(model); a != b {
		d.t.Fatalf("the server has\n%sthe model\n%safter:\n%s", a, b, joined(d.log))
	}
	return true
}

// sameWakes compares which waiters both have notified, once the real
// notifications have arrived.
func (d *duel) sameWakes() bool {
	want := slices.Sorted(slices.Values(d.wakes))
	var got []string
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		d.real.mu.Lock()
		got = slices.DeleteFunc(slices.Clone(d.real.wakes), func(s string) bool { return !slices.Contains(want, s) && !ours(s, d.name) })
		d.real.mu.Unlock()
		slices.Sort(got)
		if slices.Equal(got, want) {
			return true
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("the server alone woke\n%sthe model alone\n%safter:\n%s", joined(minus(got, want)), joined(minus(want, got)), joined(d.log))
		}
	}
}

// ours reports whether a notification is for a value of the duel over that
// name.
func ours(wake, name string) bool {
	var kind, fence int
	var value string
	fmt.Sscanf(wake, "%d %s %d", &kind, &value, &fence)
	return len(value) > 33 && value[33:] == name
}

func joined(lines []string) (s string) {
	for _, l := range lines {
		s += "  " + l + "\n"
	}
	return s
}

// minus returns what is in a and not, or not as often, in b.
func minus(a, b []string) []string {
	a = slices.Clone(a)
	for _, s := range b {
		if i := slices.Index(a, s); i >= 0 {
			a = slices.Delete(a, i, i+1)
		}
	}
	return a
}
