package nodetest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/mutants"
)

// The files of the rules.
const (
	ops, entry, queue, records = "internal/nodestate/ops.go", "internal/nodestate/entry.go", "internal/nodestate/queue.go", "internal/nodestate/records.go"
	share, holders, token      = "node/share.go", "node/holders.go", "node/token.go"
)

// rules are the rules of a node, each switched off, and the claim that must find it.
var rules = []struct{ name, claim, file, old, wrong string }{
	{"who holds is not said", "a refused caller learns who holds, and for how long", holders, "	r.Left = h.Left(s, now)\n", "	r.Left = h.Left(s, now)\n	if OFF { r.Value = \"\" }\n"},
	{"more time is said than is left", "a refused caller learns who holds, and for how long", holders, "	r.Left = h.Left(s, now)\n", "	r.Left = h.Left(s, now)\n	if OFF { r.Left *= 2 }\n"},
	{"the last reader is reported", "readers hold a name together", holders, "	r.Left = h.Left(s, now)\n", "	r.Left = h.Left(s, now)\n	if OFF { r.Value = h[len(h)-1].Value }\n"},
	{"one holder is counted", "no slot has two holders", holders, "	r.Left = h.Left(s, now)\n", "	r.Left = h.Left(s, now)\n	if OFF { r.Holders = 1 }\n"},
	{"the fence is not told", "a refused caller learns who holds, and for how long", ops, "	reply := node.Reply{Status: status, Fence: e.Fence,", "	if OFF { e.Fence = 0 }\n	reply := node.Reply{Status: status, Fence: e.Fence,"},
	{"a holder that asks again is not refreshed", "asking again is granted and refreshes", entry, "	if own >= 0 {\n		e.free", "	if OFF && own >= 0 { h.Until = e.Holders[own].Until }\n	if own >= 0 {\n		e.free"},
	{"the fence's own token is granted", "a token at or below the fence is stale", token, "	case token <= fence:", "	case token < fence || token == fence && !OFF:"},
	{"a holder that asks again leaves the fence", "asking again with a higher token raises the fence", entry, "	e.raise(req, share.Mode", "	if OFF && own >= 0 { req.Token = 0 }\n	e.raise(req, share.Mode"},
	{"a holder is granted any token", "tokens are exact to the last digit", ops, "		if req.Token != 0 && e.overtaken", "		if req.Token != 0 && !OFF && e.overtaken"},
	{"the token is judged before the holder", "held is answered before any fault of the token", ops, "	share, fits := e.Holders.Place(req.Share, own)\n	switch {\n", "	share, fits := e.Holders.Place(req.Share, own)\n	if OFF && e.judge(req, s.now) == node.Stale { return node.Stale }\n	switch {\n"},
	{"a fence goes with its lock", "the fence outlives expiry", entry, "	if u := now.Add(req.Retention);", "	if OFF { req.Retention = req.TTL }\n	if u := now.Add(req.Retention);"},
	{"a repair is judged as an acquire", "a repair with a token behind the window is granted", ops, "	fits = fits && share", "	if OFF { return e.acquire(req, s) }\n	fits = fits && share"},
	{"repairs are forbidden for ever", "a release forbids repairs of its own value alone, and for a while", ops, "		e.end(req.Value, s.now.Add(req.NoRepair))\n", "		if OFF { req.NoRepair *= 1000 }\n		e.end(req.Value, s.now.Add(req.NoRepair))\n"},
	{"a release sets the fence", "a release never lowers the fence", entry, "	e.Fence = max(e.Fence, req.Token)\n", "	e.Fence = max(e.Fence, req.Token)\n	if OFF && req.Op == node.OpRelease { e.Fence = req.Token }\n"},
	{"a reader sets the fence", "readers do not refuse each other's tokens", entry, "	e.Fence = max(e.Fence, req.Token)\n", "	e.Fence = max(e.Fence, req.Token)\n	if OFF && req.Mode == node.Shared { e.Fence = req.Token }\n"},
	{"a reader raises no fence", "a writer needs a token above every reader's", entry, "	if req.Token == 0 {\n", "	if req.Token == 0 || OFF && req.Mode == node.Shared {\n"},
	{"a reader raises the floor", "readers do not refuse each other's tokens", entry, "	if floor {\n", "	if floor || OFF {\n"},
	{"a slot raises no floor", "a reader needs a token above every writer's", entry, " node.Shared, now)\n", " node.Shared && !(OFF && share.Mode == node.Slotted), now)\n"},
	{"one ticket is queued by arrival", "the queue is ordered by ticket and value, not by arrival", queue, "	return cmp.Or(cmp.Compare(a.Kind()", "	if OFF { return -1 }\n	return cmp.Or(cmp.Compare(a.Kind()"},
	{"a free name is for anybody", "a free name is granted to the head alone", queue, "	asks := req.Wait", "	if OFF { return room.Take(req.Share) }\n	asks := req.Wait"},
	{"readers that do not wait are not behind a writer", "a reader behind a waiting writer waits", queue, "	asks := req.Wait", "	if OFF && !req.Wait && req.Mode == node.Shared { return room.Take(req.Share) }\n	asks := req.Wait"},
	{"the head alone is let in", "as many waiters are granted as there are slots", queue, "	asks := req.Wait", "	if OFF && len(q.Waiters) > 0 && q.Waiters[0].Value != req.Value { return false }\n	asks := req.Wait"},
	{"readers stay out while a writer waits", "a reader behind a waiting writer waits", queue, "	asks := req.Wait", "	if OFF && req.Mode == node.Shared && slices.ContainsFunc(q.Waiters, func(w node.Waiter) bool { return w.Mode == node.Exclusive }) { return false }\n	asks := req.Wait"},
	{"all of a run of readers are notified", "two of a run of readers are notified", queue, "	second := q.Waiters[1]\n", "	for _, w := range q.Waiters[1:] { if OFF { s.tell(node.WakeTurn, w.Value) } }\n	second := q.Waiters[1]\n"},
	{"every extension notifies", "a downgrade notifies readers", ops, "	if downgraded {\n", "	if OFF && !e.Queue.empty() { s.tell(node.WakeTurn, e.Queue.Waiters[0].Value) }\n	if downgraded {\n"},
	{"a writer is notified while there are readers", "a yield of a reader is for writers", queue, "	free := room.Take(q.Waiters[0].Share)\n", "	free := room.Take(q.Waiters[0].Share) || OFF && q.Waiters[0].Mode == node.Exclusive\n"},
	{"a second reader is not notified", "two of a run of readers are notified", queue, "	turn := free && room.Take(second.Share)\n", "	turn := free && room.Take(second.Share) && !OFF\n"},
	{"a waiter that asks is notified", "a release wakes the head, once", queue, "	q.Touched = s.now\n", "	q.Touched = s.now\n	if OFF { s.asker = \"\" }\n"},
	{"everybody is notified twice", "a release wakes the head, once", queue, "		s.wakes = append(s.wakes,", "		if OFF { s.wakes = append(s.wakes, node.Wake{Kind: kind, Value: value, Fence: s.fence}) }\n		s.wakes = append(s.wakes,"},
	{"a notification has no fence", "a wake carries the fence", queue, "	if value != s.asker {\n		", "	if OFF { s.fence = 0 }\n	if value != s.asker {\n		"},
	{"when to look again is not said", "those behind a silent head are called, ever more, and lapse together", ops, "		reply.Left = e.Queue.Lapses.Sub(now)\n", "		if !OFF { reply.Left = e.Queue.Lapses.Sub(now) }\n"},
	{"a break of a free name is not noted", "a holder is not repaired on a node that was free when it was broken", ops, "	if req.Token != 0 {\n		// Also", "	if req.Token != 0 && (e.held() || !OFF) {\n		// Also"},
	{"a break without a token forgets the fence", "a break without a token leaves the fence alone", ops, "	e.Holders = nil\n	e.raise", "	e.Holders = nil\n	if OFF && req.Token == 0 { e.forgetFence() }\n	e.raise"},
	{"a break leaves a holder", "a break removes all holders", ops, "	e.Holders = nil\n	e.raise", "	defer func(h node.Holders) { if OFF && len(h) > 1 { e.Holders = h[1:] } }(e.Holders)\n	e.Holders = nil\n	e.raise"},
	{"a break is judged by the first holder", "a break removes all holders", ops, "== e.Fence && e.held()):", "== e.Fence && e.held() && !(OFF && req.Token > e.Holders[0].Token)):"},
	{"the fence is listed as the holder's token", "a held name is listed with its holder", entry, "		l.Holders = slices.Clone(e.Holders)\n", "		l.Holders = slices.Clone(e.Holders)\n		if OFF { l.Reply.HolderToken = e.Fence }\n"},
	{"a waiter is listed without what it waits for", "a waiter of another kind has its place", entry, "	l.Waiting = len(waiters)\n", "	if waiters = slices.Clone(waiters); OFF { for i := range waiters { waiters[i].Share = node.Share{} } }\n	l.Waiting = len(waiters)\n"},
	{"records are listed", "a look shows what is completed, the newest first, and since when that is complete", entry, "	l.Waiting = len(waiters)\n", "	if OFF { l.Completed = e.Records.ordered() }\n	l.Waiting = len(waiters)\n"},
	{"since when is not shown", "a look shows what is completed, the newest first, and since when that is complete", entry, "	completed := e.Records.ordered()\n", "	completed := e.Records.ordered()\n	if OFF { e.Records.Since = time.Time{} }\n"},
	{"the oldest record is shown first", "a look shows what is completed, the newest first, and since when that is complete", records, "	slices.SortFunc(all, func(a, b node.Completed) int {\n", "	slices.SortFunc(all, func(a, b node.Completed) int {\n		if OFF { a, b = b, a }\n"},
	{"a name that is waited for is listed only while it is held", "a name is listed with its waiters", "internal/nodestate/server.go", "l.Waiting > 0 ||", "l.Waiting > 0 && !OFF ||"},

	{"there is room for two readers", "readers hold a name together", share, "r.readers >= MaxHolders):", "r.readers >= MaxHolders || OFF && r.readers >= 2):"},
	{"the first reader's expiry counts", "each reader has its own expiry", holders, "	return last.Sub(now)\n", "	if OFF { return first.Sub(now) }\n	return last.Sub(now)\n"},
	{"one reader's release frees all", "a reader extends and releases its own share alone", ops, "		e.free(own)\n	}\n	e.Queue.withdraw", "		e.free(own)\n		if OFF { e.Holders = nil }\n	}\n	e.Queue.withdraw"},
	{"any reader is extended for another", "a reader extends and releases its own share alone", ops, "	if own < 0 {\n		return e.missing", "	if OFF && own < 0 && req.Mode == node.Shared && e.held() { own = 0 }\n	if own < 0 {\n		return e.missing"},
	{"a reader raises its token below the floor", "a reader that asks again keeps its token or raises it", ops, "req.Token <= e.Floor ||", "req.Token <= e.Floor && !OFF ||"},
	{"a reader below the floor may not ask again", "a reader that asks again keeps its token or raises it", ops, "	case node.Shared:\n		return ", "	case node.Shared:\n		return OFF && req.Token <= e.Floor || "},
	{"the highest slot is given first", "slots are given lowest first", share, "Lowest() uint8 {", "Lowest() uint8 { if OFF { return uint8(63 - bits.LeadingZeros64(uint64(s))) };"},
	{"slots of another number are free", "another number of slots conflicts", holders, "h[i].Slots == slots:", "(OFF || h[i].Slots == slots):"},
	{"more slots are given than there are", "no slot has two holders", share, "r.used >= int(s.Slots)", "r.used >= int(s.Slots) && !OFF"},
	{"a writer is let in beside slots", "a slot excludes readers and writers, and they a slot", share, "(r.readers > 0 || r.slots > 0):", "(r.readers > 0 || r.slots > 0 && !OFF):"},
	{"slots are given beside readers", "a slot excludes readers and writers, and they a slot", share, "(r.readers > 0 || r.slots > 0 &&", "(r.readers > 0 && !OFF || r.slots > 0 &&"},
	{"there are fewer slots", "a slot that is asked for is given if it is free", share, "s.Slots > MaxSlots)", "s.Slots > MaxSlots || OFF && s.Slots > 60)"},
	{"the number of slots is not compared", "another number of slots conflicts", share, "r.slots != s.Slots ||", "r.slots != s.Slots && !OFF ||"},
	{"another slot is extended", "an extension is for one slot", ops, "	if h.Share != req.Share && !downgraded {\n", "	if h.Share != req.Share && !downgraded {\n		if OFF { h.Until = s.now.Add(req.TTL) }\n"},
	{"a holder that moves keeps its slot", "a holder moves to a free slot and to no other", entry, "	if own >= 0 {\n		e.free", "	if own >= 0 && !(OFF && share.Mode == node.Slotted) {\n		e.free"},
	{"a proposal is compared with the holder's token alone", "an earlier proposal does not move a slot back", ops, "	return req.Token != h.Token && req.Token <= e.Fence\n", "	if OFF { return req.Token < h.Token }\n	return req.Token != h.Token && req.Token <= e.Fence\n"},
	{"the holder of a slot may not ask again below the fence", "an earlier proposal does not move a slot back", ops, "	return req.Token != h.Token && req.Token <= e.Fence\n", "	if OFF { return req.Token <= e.Fence }\n	return req.Token != h.Token && req.Token <= e.Fence\n"},
	{"a reader is repaired beside a writer", "a repair of a reader needs room", ops, "	case !fits:\n		return node.Held\n	case own", "	case !fits && !(OFF && req.Mode == node.Shared):\n		return node.Held\n	case own"},
	{"no reader is repaired beside another", "a repair of a reader needs room", ops, "	switch {\n	case own >= 0 && e.Holders[own].Share", "	fits = fits && !(OFF && own < 0 && e.held())\n	switch {\n	case own >= 0 && e.Holders[own].Share"},
	{"a repair leaves a value in its slot", "a repair moves a value to its slot", ops, "	case own >= 0: // it has another slot, and is moved\n", "	case own >= 0: // it has another slot, and is moved\n		if OFF { return node.Granted }\n"},
	{"any free slot is repaired", "a repair moves a value to its slot", ops, "fits && share == req.Share\n", "fits && (OFF || share == req.Share)\n"},
	{"a downgrade forgets the token", "an extension makes a writer a reader", ops, "	h.Until, h.Share = s.now.Add(req.TTL), req.Share\n", "	h.Until, h.Share = s.now.Add(req.TTL), req.Share\n	if OFF && downgraded { h.Token = 0 }\n"},
	{"free slots are not shown to one that waits for others", "as many waiters are granted as there are slots", ops, "status == node.Reserved) {\n			reply.Free", "status == node.Reserved && !OFF) {\n			reply.Free"},
	{"a reader that keeps what it yields raises the floor", "a yield of a reader is for writers", ops, "		e.raise(req, req.Mode != node.Shared, s.now)\n", "		e.raise(req, req.Mode != node.Shared || OFF, s.now)\n"},
	{"a reader yields to readers that fit", "a yield of a reader is for writers", ops, "	case e.Queue.isNext(req, e.Holders.Room(own)):", "	case e.Queue.isNext(req, e.Holders.Room(own)) && !(OFF && req.Mode == node.Shared):"},

	{"what is kept is kept for its whole time", "a release with Keep leaves the name taken until Keep is over", ops, "if until := s.now.Add(req.Keep);", "if until := s.now.Add(req.Keep); !OFF &&"},
	{"a release that keeps leaves the fence", "a release with Keep raises the fence and leaves the queue", ops, "	if verdict != node.Ahead {\n", "	if verdict != node.Ahead && !(OFF && req.Keep > 0) {\n"},
	{"a question records", "an occurrence is completed when it was recorded", records, "	default:\n		if _,", "	default:\n		if OFF { r.complete(req.Occurrence, now.Add(req.Retention)) }\n		if _,"},
	{"all records go with the first", "a record is forgotten when its retention is over", records, "	maps.DeleteFunc(r.Completed,", "	for _, u := range r.Completed { if OFF && !u.After(now) { clear(r.Completed) } }\n	maps.DeleteFunc(r.Completed,"},
	{"a memory begins with the last question", "a memory of a name has a beginning, and keeps it", records, "	if r.Begun.IsZero() ||", "	if OFF || r.Begun.IsZero() ||"},
	{"a record frees the name", "a record touches neither lock nor fence", records, "	case req.Op == node.OpComplete:\n", "	case req.Op == node.OpComplete:\n		if OFF { e.Holders = nil }\n"},
	{"a new memory is whole", "a memory is whole after an adoption that makes it whole", records, "begun, begun, o.server, false", "begun, begun, o.server, OFF"},
	{"records are adopted for a memory that was lost", "records of others are adopted by the memory that they are for", records, "!a.Begun.Equal(r.Begun):", "!a.Begun.Equal(r.Begun) && !OFF:"},
	{"no records are adopted", "records of others are adopted by the memory that they are for", records, "			r.complete(x.Occurrence,", "			if OFF { continue }\n			r.complete(x.Occurrence,"},
	{"a yield is carried out as often as it comes", "a yield is carried out once", ops, "	case refused(verdict):\n		return verdict\n	case e.Queue", "	case refused(verdict) && !OFF:\n		return verdict\n	case e.Queue"},
	{"a token may be behind the window", "a token behind the window is refused even with no fence", token, "case int64(token) < oldest:", "case int64(token) < oldest && !OFF:"},
}

// TestMutantsOfTheRulesAreFoundOut switches each rule off in store/memory, and has
// the suite find it.
func TestMutantsOfTheRulesAreFoundOut(t *testing.T) {
	var edits []mutants.Edit
	for _, r := range rules {
		edits = append(edits, mutants.Edit{Name: r.name, File: r.file, Old: r.old, New: r.wrong})
	}
	binaries := mutants.Build(t, edits, "./store/memory", "test -c -vet=off")
	for _, r := range rules {
		if binaries == nil || !strings.Contains(r.name, os.Getenv("REDLATCH_MUTANT")) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			run := exec.CommandContext(t.Context(), binaries[r.name], "-test.run", "^TestConformance$")
			run.Env = append(os.Environ(), mutants.Env+"="+r.name)
			out, err := run.CombinedOutput()
			if claim := strings.ReplaceAll(r.claim, " ", "_"); err == nil || !strings.Contains(string(out), "--- FAIL: TestConformance/"+claim) {
				t.Errorf("%q does not find it: %v\n%s", r.claim, err, out)
			}
		})
	}
}
