//go:build unix

package nodestate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
)

// TestModelAnswersAsARealServer sends sequences of random requests to a real
// store and to its model, whose clock is set to the store's each time. They must
// give the same answers, list the same holders, waiters and records, and notify the
// same waiters.
func TestModelAnswersAsARealServer(t *testing.T) {
	for _, r := range rivals() {
		if testing.Short() && (r.rows || !r.exact) {
			continue // it takes time to pass
		}
		from, count := check.Seeds(t, 1, map[bool]uint64{false: 60, true: 16}[r.rows || r.exact])
		workers := min(8, count)
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			open, _ := r.start(t)
			all := t
			var reserved atomic.Int64
			t.Cleanup(func() {
				if n := reserved.Load(); n == 0 && count >= 60 && !t.Failed() {
					t.Error("no extension has reserved tokens")
				} else {
					t.Logf("%d extensions have reserved tokens", n)
				}
			})
			for w := range workers {
				t.Run("", func(t *testing.T) {
					t.Parallel()
					n := listen(t, open(t), r.rows)
					whole, steps := 0, 0
					// A sequence that comes near the edge of a time to live ends
					// there: a busy machine runs more of them, until one reached its
					// end or as many requests were compared as in ten that do.
					for seed := from + w; seed < from+count || whole == 0 && steps < 10*duelSteps && seed < from+200*count; seed += workers {
						if all.Failed() {
							return // another one has found a difference
						}
						d := newDuel(t, r, n, duelName(seed), seed)
						if d.fight(nil) {
							whole++
						}
						steps += len(d.log)
						reserved.Add(d.reserved)
					}
					t.Logf("%d whole sequences, %d requests compared", whole, steps)
					if whole == 0 && steps < 10*duelSteps {
						t.Errorf("no sequence reached its end, and %d requests were compared", steps)
					}
				})
			}
		})
	}
}

// duelName is the name that a duel is about. Of a name with braces Redis is sent
// all keys, as in a Cluster; of others the scripts make them.
func duelName(seed uint64) string {
	if seed%3 == 0 {
		return fmt.Sprintf("duel/{%d}", seed)
	}
	return fmt.Sprintf("duel/%d", seed)
}

// TestModelIsGuardedAsARealServer does the same with the guard on, and flushes
// both in between.
func TestModelIsGuardedAsARealServer(t *testing.T) {
	from, count := check.Seeds(t, 1, 6)
	for _, r := range rivals() {
		if !r.marks {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for seed := from; seed < from+min(count, 200); seed++ {
				open, flush := r.start(t)
				s := rand.New(rand.NewPCG(seed, 0))
				guard := &node.Guard{Membership: "0123456789abcdef", Nodes: "a b c", MaxTTL: time.Second,
					Window: 2 * time.Second, Quarantine: time.Duration(50+s.IntN(450)) * time.Millisecond}
				d := newDuel(t, r, listen(t, open(t), r.rows), duelName(seed), seed)
				d.flush = flush
				d.fight(guard)
			}
		})
	}
}

// one reports true once in n calls on average.
func one(s *rand.Rand, n int) bool { return s.IntN(n) == 0 }

// duel is a real server and its model.
type duel struct {
	t     *testing.T
	rival rival
	seed  uint64
	name  string
	s     *rand.Rand
	real  *watched
	model nodestate.Server
	began time.Time
	now   time.Time
	fence node.Token
	begun time.Time // when the memory of the name began
	plain bool      // without tokens
	// long and window are a time to live and a window of tokens. Some are the
	// defaults, which a client does not send to Redis.
	long, window time.Duration
	wakes        []string
	edges        []edge
	// slowest is how long the slowest request took, or may have taken whose clock the
	// node goes by at first.
	slowest time.Duration
	flush   func()
	log     []string
	kinds   [6]node.Share // what each value waits for
	crowd   bool          // most requests wait, and few tokens are refused
	alone   bool          // nobody waits
	brief   bool          // some fences are kept for hardly longer than the lock
	sent    []challenge
	// reserved counts the extensions that have reserved tokens.
	reserved int64
}

func newDuel(t *testing.T, r rival, real *watched, name string, seed uint64) *duel {
	d := &duel{t: t, rival: r, seed: seed, name: name, s: rand.New(rand.NewPCG(seed, 0)), real: real, began: time.Now(), slowest: real.read}
	d.plain, d.alone, d.brief = one(d.s, 6), one(d.s, 4) || r.places, one(d.s, 2) && !r.keeps
	d.long, d.window = time.Hour, 2*time.Second
	if seed%2 == 0 {
		d.long, d.window = 10*time.Second, 10*time.Second
	}
	if !one(d.s, 3) {
		// Few kinds, so that some share.
		some := []node.Share{{}, {Mode: node.Shared}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 2}, {Mode: node.Slotted, Slots: 3}}
		a, b := some[d.s.IntN(len(some))], some[1+d.s.IntN(len(some)-1)]
		if d.crowd = !one(d.s, 3); d.crowd && one(d.s, 2) {
			a = node.Share{} // for whom the others wait, and who waits for them
		}
		for i := range d.kinds {
			d.kinds[i] = []node.Share{a, b, b}[d.s.IntN(3)]
		}
	}
	d.model = nodestate.Server{ID: "model", Silent: r.rows}
	return d
}

const duelSteps = 60 // the requests of a sequence

// fight sends one sequence of requests, and reports whether it reached its end.
func (d *duel) fight(guard *node.Guard) bool {
	if guard == nil && d.brief && !d.plain && !d.shorten() {
		return false
	}
	for i := range duelSteps {
		if guard != nil && one(d.s, 12) && d.flush != nil {
			d.flush()
			d.model.Flush()
			d.log = append(d.log, "flush")
		}
		if one(d.s, 10) {
			// Shorter than a notification is valid, or longer.
			time.Sleep([]time.Duration{170 * time.Millisecond, 380 * time.Millisecond}[d.s.IntN(4)/3])
		}
		c := challenge{Request: d.request()}
		if one(d.s, 5) {
			c = challenge{records: d.recordRequest()}
		}
		switch last := len(d.sent) - 1; { // a copy of one of the last requests
		case last >= 0 && d.sent[last].Reserve > 0 && one(d.s, 2):
			c = d.sent[last]
		case last >= 0 && one(d.s, 8):
			c = d.sent[max(0, last-3):][d.s.IntN(min(4, last+1))]
		}
		d.sent = append(d.sent, c)
		if guard != nil && c.Op != node.OpYield {
			asked := &c.Guard
			if c.records != nil {
				c.records = new(*c.records)
				asked = &c.records.Guard
			}
			if one(d.s, 6) {
				marks := []node.Mark{node.MarkRead, node.MarkRead, node.MarkWrite, node.MarkWrite, node.MarkWrite, node.MarkFresh, node.MarkReplace, node.MarkReplace, node.MarkBar, node.MarkNote}
				c.records = nil
				c.mark = &node.MarkRequest{Mark: marks[d.s.IntN(len(marks))],
					Least: []time.Duration{0, 0, 2 * guard.Quarantine}[d.s.IntN(3)],
					Until: []time.Time{{}, time.Now().Add(time.Hour), time.Now().Add(-time.Hour)}[d.s.IntN(3)]}
				asked = &c.mark.Guard
			}
			*asked = guard
			other := *guard
			other.Off = c.mark == nil && one(d.s, 5)
			if one(d.s, 10) {
				other.Membership = "fedcba9876543210"
			}
			if c.mark != nil && one(d.s, 6) {
				other.Generation = 2
			}
			other.Told = c.mark != nil && one(d.s, 2)
			if other != *guard {
				*asked = &other
			}
			if one(d.s, 40) {
				d.real.epoch++ // another node has noted a later marking
			}
			if c.Epoch = d.real.epoch; c.mark != nil {
				c.mark.Epoch = d.real.epoch
			}
		}
		if !d.step(c) {
			return false
		}
		d.sameListing()
		if i%8 == 7 {
			d.sameWakes() // few sequences reach their end
		}
	}
	return d.sameWakes()
}

// shorten has a request with a brief retention follow one with a long one, and looks
// when the brief one is over.
func (d *duel) shorten() bool {
	req := node.Request{Op: node.OpAcquire, Name: d.name, Value: fmt.Sprintf("%032x:%s", 3, d.name), TTL: 100 * time.Millisecond, Fencing: node.Fencing{Window: d.window, Retention: 2 * time.Hour}}
	for range 2 {
		if req.Token = node.Token(time.Now().UnixMicro()); !d.step(challenge{Request: req}) {
			return false
		}
		req.Op = []node.Op{node.OpRelease, node.OpRelease, node.OpExtend, node.OpAcquire, node.OpBreak}[d.s.IntN(5)]
		if req.Retention = req.TTL + briefly; req.Op == node.OpBreak {
			req.Value = ""
		}
	}
	time.Sleep(380 * time.Millisecond)
	return d.step(challenge{Request: node.Request{Op: node.OpInspect, Name: d.name}})
}

// edge is when something expires. A server reads its clock more than once in a
// request, so that it may be off by as long as the request took.
type edge struct {
	at  time.Time
	off time.Duration
}

// nearEdge reports whether something expires so near to the time of a request, which
// took so long, that the answers cannot be compared. Servers count milliseconds.
func (d *duel) nearEdge(now time.Time, took time.Duration) bool {
	return !d.rival.exact && slices.ContainsFunc(d.edges, func(e edge) bool {
		return e.at.Sub(now).Abs() < e.off+took+5*time.Millisecond
	})
}

// differ ends the test.
func (d *duel) differ(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf("seed %d: %s\nafter:\n%s", d.seed, fmt.Sprintf(format, args...), joined(d.log))
}

// request makes up a request about few values, so that they collide.
func (d *duel) request() node.Request {
	s, now := d.s, time.Now()
	ops := []node.Op{node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpRelease, node.OpRelease,
		node.OpExtend, node.OpYield, node.OpRepair, node.OpInspect, node.OpBreak}
	if d.crowd {
		ops = []node.Op{node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire,
			node.OpRelease, node.OpRelease, node.OpRelease, node.OpYield, node.OpYield, node.OpExtend, node.OpRepair, ops[s.IntN(len(ops))]}
	}
	op, who, ttl := ops[s.IntN(len(ops))], s.IntN(6), []time.Duration{100 * time.Millisecond, d.long}[s.IntN(4)/3]
	if e := d.model.Stored(d.name); (d.crowd || d.alone) && e != nil && !one(s, 3) {
		if !d.alone {
			ttl = d.long // so that others wait
		}
		var near []string
		if op != node.OpAcquire {
			for _, h := range e.Holders {
				near = append(near, h.Value)
			}
		}
		for _, w := range e.Queue.Waiters[:min(2, len(e.Queue.Waiters))] {
			near = append(near, w.Value)
		}
		if len(near) > 0 {
			fmt.Sscanf(near[s.IntN(len(near))], "%x", &who) // one that holds, or is near
		}
	}
	req := node.Request{
		Op: op, Name: d.name, Value: fmt.Sprintf("%032x:%s", who, d.name), TTL: ttl, Fencing: node.Fencing{Window: d.window, Retention: time.Hour}, Waiting: node.Waiting{Ticket: d.began.Add(time.Duration(who*2%3) * time.Second).UnixMicro()}, // two have the same
	}
	if d.brief {
		if op == node.OpRelease { // which has none
			ttl = 100 * time.Millisecond
		}
		req.Retention = []time.Duration{ttl + briefly, ttl + briefly, 2 * time.Hour}[s.IntN(3)]
	}
	if d.alone && req.Op == node.OpYield {
		req.Op = node.OpExtend // who yields waits
	}
	far := d.window + 700*time.Millisecond
	req.Token = []node.Token{
		node.Token(now.UnixMicro()), node.Token(now.UnixMicro()), d.fence + 1, d.fence + 1, d.fence, d.fence - min(d.fence, 1),
		node.Token(now.Add(far).UnixMicro()), node.Token(now.Add(-far).UnixMicro()),
	}[s.IntN(8)]
	if d.crowd && !one(s, 5) {
		req.Token = max(d.fence+1, node.Token(now.UnixMicro()))
	}
	if d.plain {
		req.Token = 0
		if req.Op == node.OpRepair {
			req.Op = node.OpInspect // without tokens nothing is repaired
		}
	}
	req.Share = d.kinds[who]
	if d.kinds != [6]node.Share{} && req.Op != node.OpYield && one(s, 6) {
		// A value waits for one kind alone.
		other := []node.Share{{}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 2}, {Mode: node.Slotted, Slots: 3}}[s.IntN(4)]
		if req.Op != node.OpAcquire || who == 3 {
			req.Share = other
		}
	}
	if req.Mode == node.Slotted {
		req.Slot = uint8(s.IntN(int(req.Slots)))
	}
	if req.Mode == node.Shared && !d.plain && one(s, 3) {
		req.Token = d.fence // above the floor, or equal to it
	}
	switch req.Op {
	case node.OpAcquire:
		req.Wait = who != 3 && !d.alone // the same in all its requests
		if one(s, 8) {
			req.Token = 0 // like a client without tokens, beside clients with tokens
		}
	case node.OpExtend:
		if !d.plain {
			req.Token = max(req.Token, 1) // without one it would not keep the fence
		}
		req.Reserve = []node.Token{0, 1, 3}[s.IntN(3)]
		if held := d.model.Look(d.now, d.name).Holders; len(held) > 0 && !d.plain && one(s, 2) {
			// The holder asks for tokens that nobody has.
			req.Value, req.Share, req.Token = held[0].Value, held[0].Share, max(d.fence+1, node.Token(now.UnixMicro()))
		}
	case node.OpYield:
		req.Wait = true
	case node.OpRelease:
		if d.brief { // one that is ahead raises no fence, but Redis keeps the fence for its retention
			req.Token = min(req.Token, max(d.fence+1, node.Token(now.UnixMicro())))
		}
		req.Once = one(s, 3)
		req.NoRepair = []time.Duration{0, 0, 100 * time.Millisecond, time.Hour}[s.IntN(4)]
		req.Keep = []time.Duration{0, 0, 0, 100 * time.Millisecond, 10 * time.Minute, 2 * time.Hour}[s.IntN(6)]
		if d.crowd && !one(s, 8) {
			req.NoRepair, req.Keep = 0, 0 // else it soon waits for nobody, and joins no queue
		}
	case node.OpRepair:
		req.Token = max(req.Token, 1)
		if e := d.model.Stored(d.name); e != nil && e.Break > 1 && one(s, 2) {
			req.Token = e.Break - node.Token(s.IntN(2))
		}
		req.Until = []time.Time{{}, now.Add(time.Hour), now.Add(-time.Hour)}[s.IntN(3)]
	case node.OpBreak:
		req.Value, req.Share = "", node.Share{}
	case node.OpInspect:
		req.Share = node.Share{}
	}
	return req
}

// briefly is how long some records and memories are kept.
const briefly = 150 * time.Millisecond

// recordRequest makes up a request about few records.
func (d *duel) recordRequest() *node.RecordsRequest {
	s := d.s
	req := &node.RecordsRequest{
		Op: []node.Op{node.OpComplete, node.OpCheck, node.OpRecords, node.OpAdopt}[s.IntN(4)], Name: d.name,
		Occurrence: fmt.Sprint(s.IntN(3)), Retention: []time.Duration{briefly, time.Hour}[s.IntN(4)/3], Skip: s.IntN(3) / 2,
	}
	if req.Op == node.OpAdopt {
		req.Begun, req.Whole, req.Since = d.begun, one(s, 2), d.began.Add(-time.Duration(s.IntN(1e6))*time.Microsecond).Truncate(time.Microsecond)
		if one(s, 4) {
			req.Begun = d.began
		}
		for range s.IntN(3) {
			req.Records = append(req.Records, node.Record{Occurrence: fmt.Sprint(s.IntN(4)), Left: []time.Duration{briefly, time.Hour}[s.IntN(2)]})
		}
	}
	return req
}

// remembered is what is compared of a memory. Records of one millisecond are in no
// order, so that those that are left after a skip are counted.
func remembered(req *node.RecordsRequest, m *node.RecordsReply) string {
	var records []string
	for _, r := range m.Records {
		records = append(records, fmt.Sprintf("%s for %v", r.Occurrence, r.Left.Round(10*time.Minute)))
	}
	slices.Sort(records)
	if req.Skip > 0 {
		records = []string{fmt.Sprint(len(records))}
	}
	return fmt.Sprintf(", memory begun %d since %d for %v whole %v marked %d new %v, %d records %q",
		m.Begun.UnixMicro(), m.Since.UnixMicro(), m.Retention, m.Whole, m.Marked.UnixMicro(), m.New, m.Count, records)
}

// challenge is a request for a lock, or what is asked in its place.
type challenge struct {
	node.Request
	mark    *node.MarkRequest
	records *node.RecordsRequest
}

func (c challenge) String() string {
	if c.mark != nil {
		return fmt.Sprintf("mark %d", c.mark.Mark)
	}
	if c.records != nil {
		return c.records.Op.String()
	}
	return c.Op.String()
}

// answer is the answer to a challenge.
type answer struct {
	node.Reply
	TrustedFrom time.Time          // to a mark, in milliseconds
	records     *node.RecordsReply // to a request about records
}

func marked(r node.MarkReply) answer {
	return answer{node.Reply{Status: r.Status, Left: r.Left, Now: r.Now, Marker: r.Marker}, r.TrustedFrom.Truncate(time.Millisecond), nil}
}

func recorded(r node.RecordsReply) answer {
	return answer{Reply: node.Reply{Status: r.Status, Now: r.Now}, records: &r}
}

// ask asks a node.
func (c challenge) ask(n node.Node) (a answer, err error) {
	if c.mark != nil {
		r, err := n.(node.Guarded).Mark(context.Background(), *c.mark)
		return marked(r), err
	}
	if c.records != nil {
		r, err := n.(node.Recorder).Records(context.Background(), *c.records)
		return recorded(r), err
	}
	a.Reply, err = n.Do(context.Background(), c.Request)
	return a, err
}

// apply asks the model.
func (c challenge) apply(s *nodestate.Server, now time.Time) (a answer, wakes []node.Wake, err error) {
	if c.mark != nil {
		return marked(s.Mark(now, *c.mark)), nil, nodestate.CheckMark(*c.mark)
	}
	if c.records != nil {
		return recorded(s.Records(now, *c.records)), nil, nodestate.CheckRecords(*c.records)
	}
	if err = nodestate.Check(c.Request); err == nil {
		a.Reply, wakes = s.Apply(now, c.Request)
	}
	return a, wakes, err
}

// step sends a request to both. It reports false if the time is too near an
// edge for the answers to be compared.
func (d *duel) step(c challenge) bool {
	req, sent := c.Request, time.Now()
	real, err := c.ask(d.real.Node)
	if err != nil {
		d.t.Fatalf("%+v: %v", c, err)
	}
	took := time.Since(sent)
	if real.Now.IsZero() { // a release that did not need the clock
		real.Now = sent.Add(took)
	}
	d.slowest = max(d.slowest, took)
	off := took
	if d.rival.stamps {
		// A time that is foreseen is early by as long as the last read and the
		// write took, and by what the clocks' rates may differ.
		off += d.real.read + 2*time.Millisecond
	}
	if req.Op != node.OpAcquire && req.Op != node.OpExtend && req.Op != node.OpRelease {
		d.real.read = 0
	}
	d.real.read = max(d.real.read, took)
	if d.nearEdge(real.Now, off) {
		return false
	}
	d.now, d.real.epoch = real.Now, max(d.real.epoch, real.Epoch)
	model, err := d.ask(c)
	if err != nil {
		d.t.Fatalf("the model on %+v: %v", c, err)
	}
	d.fence = max(d.fence, model.Fence)
	if real.Confirmed {
		d.reserved++
	}
	if c.mark != nil {
		req = node.Request{TTL: c.mark.Least, Guard: c.mark.Guard}
	} else if c.records != nil {
		req = node.Request{Fencing: node.Fencing{Retention: c.records.Retention}, Guard: c.records.Guard}
	}
	after := []time.Duration{req.TTL, req.NoRepair, req.Keep, req.Retention}
	if e := d.model.Stored(d.name); e != nil && len(e.Queue.Waiters) > 0 {
		after = append(after, node.WaiterLease, node.TurnLease, node.TurnLease/6)
	}
	if g := req.Guard; g != nil {
		after = append(after, g.Quarantine, g.Quarantine+briefly)
	}
	if m := model.records; m != nil {
		d.begun = m.Begun
		after = append(after, briefly)
	} else if c.mark != nil {
		after = append(after, briefly)
	}
	for _, a := range after {
		if a > 0 {
			d.edges = append(d.edges, edge{d.now.Add(a), off})
		}
	}
	d.log = append(d.log, fmt.Sprintf("%v %v %.32s %v token %d ticket %d reserve %d retention %v wait %v once %v keep %v guard %v: %v", d.now.UnixMicro(), c, req.Value, req.Share,
		req.Token, req.Ticket, req.Reserve, req.Retention, req.Wait, req.Once, req.Keep, req.Guard != nil, real.Status))
	if a, b := c.essence(real), c.essence(model); a != b {
		d.differ("%s says %s, the model %s", d.rival.name, a, b)
	}
	if off := real.Left - model.Left; off.Abs() > 2*d.slowest+took+15*time.Millisecond {
		d.differ("%s says %v left, the model %v", d.rival.name, real.Left, model.Left)
	}
	return true
}

// ask asks the model. If the store keeps rows, its renewals in the queue are as
// coarse as theirs.
func (d *duel) ask(c challenge) (answer, error) {
	var before nodestate.Entry
	if e := d.model.Stored(c.Name); e != nil {
		before = e.Clone()
		before.Settle(d.now)
	}
	reply, wakes, err := c.apply(&d.model, d.now)
	for _, w := range wakes {
		d.wakes = append(d.wakes, described(w))
	}
	if e := d.model.Stored(c.Name); e != nil && d.rival.rows && c.mark == nil {
		e.Queue.Coarsen(&before.Queue)
	}
	return reply, err
}

// essence is what is compared of a reply.
func (c challenge) essence(r answer) string {
	req := c.Request
	if c.mark != nil {
		req = node.Request{}
	}
	text := fmt.Sprintf("%v, holder %q, foreign %q, reason %q, needs mark %v", r.Status, r.Value, r.Format, r.Reason, r.NeedsMark)
	// To what is granted as it was asked a server may repeat the token.
	repeated := r.Status == node.Granted && (req.Op == node.OpExtend || req.Token == 0)
	if !repeated && r.Status != node.Quarantined && r.Status != node.Misconfigured {
		text += fmt.Sprintf(", fence %d", r.Fence)
	}
	if r.Status == node.Held {
		text += fmt.Sprintf(", holder's token %d", r.HolderToken)
	}
	if r.Status == node.Held || r.Status == node.Granted && req.Op == node.OpAcquire {
		text += fmt.Sprintf(", %v of %d holders, free %b", r.Share, r.Holders, r.Free)
	}
	if r.Status != node.Granted && req.Wait {
		text += fmt.Sprintf(", place %d", r.Rank)
	}
	if req.Reserve > 0 {
		text += fmt.Sprintf(", reserved %v before %d", r.Confirmed, r.Next)
	}
	if r.Guard != nil {
		text += fmt.Sprintf(", list %s of generation %d, told %v, from %q", r.Guard.Membership, r.Guard.Generation, r.Guard.Told, r.Guard.From)
	}
	if c.mark != nil || req.Op == node.OpAcquire && r.Status == node.Granted {
		text += fmt.Sprintf(", epoch %d", r.Epoch)
	}
	if c.records != nil {
		text += remembered(c.records, r.records)
	}
	return text
}

// sameListing compares what both list of the name, unless the time is too near an
// edge.
func (d *duel) sameListing() {
	sent := time.Now()
	real, err := d.real.Node.(node.Lister).Look(context.Background(), d.name)
	check.Must(d.t, err)
	took := time.Since(sent)
	if d.nearEdge(real.Reply.Now, took) {
		return
	}
	model := d.model.Look(real.Reply.Now, d.name)
	if a, b := listed(real), listed(model); a != b {
		d.differ("%s has\n%sthe model\n%s", d.rival.name, a, b)
	}
	for i, h := range real.Holders {
		if off := h.Until.Sub(model.Holders[i].Until); off.Abs() > 2*d.slowest+took+15*time.Millisecond { // foreseen by a read and a write
			d.differ("%s has %.32s until %v, the model until %v", d.rival.name, h.Value, h.Until, model.Holders[i].Until)
		}
	}
}

// listed is what is compared of a listing.
func listed(l node.Listing) string {
	text := fmt.Sprintf("  %v, fence %d, broken %d, %d waiting, records complete since %d\n", l.Reply.Status, l.Reply.Fence, l.Broken, l.Waiting, l.Since.UnixMicro())
	for _, h := range l.Holders {
		text += fmt.Sprintf("  holder %.32s %v with %d\n", h.Value, h.Share, h.Token)
	}
	for _, w := range l.Waiters {
		text += fmt.Sprintf("  waiter %.32s %v with %d\n", w.Value, w.Share, w.Ticket)
	}
	var records []string // those of one millisecond are in no order
	for _, c := range l.Completed {
		records = append(records, fmt.Sprintf("  record %s for %v\n", c.Occurrence, c.Left.Round(10*time.Minute)))
	}
	slices.Sort(records)
	return text + strings.Join(records, "")
}

// sameWakes compares which waiters both have notified, once the real
// notifications have arrived.
func (d *duel) sameWakes() bool {
	if d.rival.rows {
		return true
	}
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
			d.differ("%s alone notified\n%sthe model alone\n%s", d.rival.name, joined(minus(got, want)), joined(minus(want, got)))
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
