package nodetest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/mutants"
)

// The files of the rules.
const (
	ops, entry, queue, records = "internal/nodestate/ops.go", "internal/nodestate/entry.go", "internal/nodestate/queue.go", "internal/nodestate/records.go"
	share, holders, token      = "node/share.go", "internal/nodestate/holders.go", "node/token.go"
	server                     = "internal/nodestate/server.go"
	beside, placed             = "internal/nodestate/places.go", "store/casnode/queue.go"
)

// A rule of a node, switched off by an edit. The claims that must find it are
// separated by "; ". OLD in wrong means the old text.
type rule struct{ name, claims, file, old, wrong string }

var rules = []rule{
	{"who holds is not said", "a refused caller learns who holds, and for how long", holders, "	r.Left = h.Left(s, now)\n", "OLD	if OFF { r.Value = \"\" }\n"},
	{"more time is said than is left", "a refused caller learns who holds, and for how long", holders, "	r.Left = h.Left(s, now)\n", "OLD	if OFF { r.Left *= 2 }\n"},
	{"the last reader is reported", "readers hold a name together", holders, "	r.Left = h.Left(s, now)\n", "OLD	if OFF { r.Value = h[len(h)-1].Value }\n"},
	{"one holder is counted", "no slot has two holders", holders, "	r.Left = h.Left(s, now)\n", "OLD	if OFF { r.Holders = 1 }\n"},
	{"the fence is not told", "a refused caller learns who holds, and for how long", ops, "	reply := node.Reply{Status: status, Fence: e.Fence,", "	if OFF { e.Fence = 0 }\nOLD"},
	{"a holder that asks again is not refreshed", "asking again is granted and refreshes", entry, "	if own >= 0 {\n		e.free", "	if OFF && own >= 0 { h.Until = e.Holders[own].Until }\nOLD"},
	{"the fence's own token is granted", "a token at or below the fence is stale", token, "	case token <= fence:", "	case token < fence || token == fence && !OFF:"},
	{"a holder that asks again leaves the fence", "a holder is reported with its own token, however high the fence", entry, "	e.raise(req, share.Mode", "	if OFF && own >= 0 { req.Token = 0 }\nOLD"},
	{"a holder is granted any token", "tokens are exact to the last digit", ops, "		if req.Token != 0 && e.overtaken", "		if req.Token != 0 && !OFF && e.overtaken"},
	{"the token is judged before the holder", "held is answered before any fault of the token", ops, "	share, fits := e.Holders.Place(req.Share, own)\n	switch {\n", "	share, fits := e.Holders.Place(req.Share, own)\n	if OFF && e.judge(req, s.now) == node.Stale { return node.Stale }\n	switch {\n"},
	{"a fence goes with its lock", "the fence outlives expiry", entry, "	if u := now.Add(req.Retention);", "	if OFF { req.Retention = req.TTL }\nOLD"},
	{"a repair is judged as an acquire", "a repair with a token behind the window is granted", ops, "	fits = fits && share", "	if OFF { return e.acquire(req, s) }\nOLD"},
	{"repairs are forbidden for ever", "a release forbids repairs of its own value alone, and for a while", ops, "		e.end(req.Value, s.now.Add(req.NoRepair))\n", "		if OFF { req.NoRepair *= 1000 }\nOLD"},
	{"a release sets the fence", "a release never lowers the fence", entry, "	e.Fence = max(e.Fence, req.Token)\n", "OLD	if OFF && req.Op == node.OpRelease { e.Fence = req.Token }\n"},
	{"a reader sets the fence", "readers do not refuse each other's tokens", entry, "	e.Fence = max(e.Fence, req.Token)\n", "OLD	if OFF && req.Mode == node.Shared { e.Fence = req.Token }\n"},
	{"a reader raises no fence", "a writer needs a token above every reader's", entry, "	if req.Token == 0 {\n", "	if req.Token == 0 || OFF && req.Mode == node.Shared {\n"},
	{"a reader raises the floor", "readers do not refuse each other's tokens", entry, "	if floor {\n", "	if floor || OFF {\n"},
	{"a slot raises no floor", "a reader needs a token above every writer's", entry, " node.Shared, now)\n", " node.Shared && !(OFF && share.Mode == node.Slotted), now)\n"},
	{"one ticket is queued by arrival", "the queue is ordered by ticket and value, not by arrival", queue, "	return cmp.Or(cmp.Compare(a.Kind()", "	if OFF { return -1 }\nOLD"},
	{"a free name is for anybody", "a free name is granted to the head alone", queue, "	asks := req.Wait", "	if OFF { return room.Take(req.Share) }\nOLD"},
	{"readers that do not wait are not behind a writer", "a reader behind a waiting writer waits", queue, "	asks := req.Wait", "	if OFF && !req.Wait && req.Mode == node.Shared { return room.Take(req.Share) }\nOLD"},
	{"the head alone is let in", "as many waiters are granted as there are slots; readers at the head are granted together", queue, "	asks := req.Wait", "	if OFF && len(q.Waiters) > 0 && q.Waiters[0].Value != req.Value { return false }\nOLD"},
	{"readers stay out while a writer waits", "a reader behind a waiting writer waits", queue, "	asks := req.Wait", "	if OFF && req.Mode == node.Shared && slices.ContainsFunc(q.Waiters, func(w node.Waiter) bool { return w.Mode == node.Exclusive }) { return false }\nOLD"},
	{"all of a run of readers are notified", "two of a run of readers are notified", queue, "	second := q.Waiters[1]\n", "	for _, w := range q.Waiters[1:] { if OFF { s.tell(node.WakeTurn, w.Value) } }\nOLD"},
	{"every extension notifies", "a downgrade notifies readers; nobody is woken while the name is held", ops, "	if downgraded {\n", "	if OFF && !e.Queue.empty() { s.tell(node.WakeTurn, e.Queue.Waiters[0].Value) }\nOLD"},
	{"a writer is notified while there are readers", "a yield of a reader is for writers", queue, "	free := room.Take(q.Waiters[0].Share)\n", "	free := room.Take(q.Waiters[0].Share) || OFF && q.Waiters[0].Mode == node.Exclusive\n"},
	{"a second reader is not notified", "two of a run of readers are notified", queue, "	turn := free && room.Take(second.Share)\n", "	turn := free && room.Take(second.Share) && !OFF\n"},
	{"a waiter that asks is notified", "a release wakes the head, once", queue, "	q.Touched = s.now\n", "OLD	if OFF { s.asker = \"\" }\n"},
	{"everybody is notified twice", "a release wakes the head, once", queue, "		s.wakes = append(s.wakes,", "		if OFF { s.wakes = append(s.wakes, node.Wake{Kind: kind, Value: value, Fence: s.fence}) }\nOLD"},
	{"a notification has no fence", "a wake carries the fence", queue, "	if value != s.asker {\n		", "	if OFF { s.fence = 0 }\nOLD"},
	{"when to look again is not said", "those behind a silent head are called, ever more, and lapse together", ops, "req.Op == node.OpAcquire && s.watch {\n", "req.Op == node.OpAcquire && s.watch && !OFF {\n"},
	{"a break of a free name is not noted", "a holder is not repaired on a node that was free when it was broken", ops, "	if req.Token != 0 {\n		// Also", "	if req.Token != 0 && (e.held() || !OFF) {\n		// Also"},
	{"a break without a token forgets the fence", "a break without a token leaves the fence alone", ops, "	e.Holders = nil\n	e.raise", "	e.Holders = nil\n	if OFF && req.Token == 0 { e.forgetFence() }\n	e.raise"},
	{"a break leaves a holder", "a break removes all holders", ops, "	e.Holders = nil\n	e.raise", "	defer func(h Holders) { if OFF && len(h) > 1 { e.Holders = h[1:] } }(e.Holders)\nOLD"},
	{"a break is judged by the first holder", "a break removes all holders", ops, "== e.Fence && e.held()):", "== e.Fence && e.held() && !(OFF && req.Token > e.Holders[0].Token)):"},
	{"the fence is listed as the holder's token", "a held name is listed with its holder", entry, "		l.Holders = slices.Clone(e.Holders)\n", "OLD		if OFF { l.Reply.HolderToken = e.Fence }\n"},
	{"a waiter is listed without what it waits for", "a waiter of another kind has its place", entry, "	l.Waiting = len(waiters)\n", "	if waiters = slices.Clone(waiters); OFF { for i := range waiters { waiters[i].Share = node.Share{} } }\nOLD"},
	{"records are listed", "a look shows what is completed, the newest first, and since when that is complete", entry, "	l.Waiting = len(waiters)\n", "	if OFF { l.Completed = e.Records.ordered(now) }\nOLD"},
	{"since when is not shown", "a look shows what is completed, the newest first, and since when that is complete", entry, "	completed := e.Records.ordered(now)\n", "OLD	if OFF { e.Records.Since = time.Time{} }\n"},
	{"the oldest record is shown first", "a look shows what is completed, the newest first, and since when that is complete", records, "	slices.SortFunc(all, func(a, b node.Record) int {\n", "OLD		if OFF { a, b = b, a }\n"},
	{"a name that is waited for is listed only while it is held", "a name is listed with its waiters", server, "l.Waiting > 0 ||", "l.Waiting > 0 && !OFF ||"},

	{"there is room for two readers", "readers hold a name together", holders, "r.readers >= node.MaxHolders):", "r.readers >= node.MaxHolders || OFF && r.readers >= 2):"},
	{"the first reader's expiry counts", "each reader has its own expiry", holders, "	return last.Sub(now)\n", "	if OFF { return first.Sub(now) }\nOLD"},
	{"one reader's release frees all", "a reader extends and releases its own share alone", ops, "		e.free(own)\n	}\n	e.Queue.withdraw", "		e.free(own)\n		if OFF { e.Holders = nil }\n	}\n	e.Queue.withdraw"},
	{"any reader is extended for another", "a reader extends and releases its own share alone", ops, "	if own < 0 {\n		return e.missing", "	if OFF && own < 0 && req.Mode == node.Shared && e.held() { own = 0 }\nOLD"},
	{"a reader raises its token below the floor", "a reader that asks again keeps its token or raises it", ops, "req.Token <= e.Floor ||", "req.Token <= e.Floor && !OFF ||"},
	{"a reader below the floor may not ask again", "a reader that asks again keeps its token or raises it", ops, "	case node.Shared:\n		return ", "OLDOFF && req.Token <= e.Floor || "},
	{"the highest slot is given first", "slots are given lowest first", holders, "		s.Slot = uint8(bits.TrailingZeros64(uint64(free)))\n", "OLD		if OFF { s.Slot = uint8(63 - bits.LeadingZeros64(uint64(free))) }\n"},
	{"slots of another number are free", "another number of slots conflicts", holders, "h[i].Slots == slots:", "(OFF || h[i].Slots == slots):"},
	{"more slots are given than there are", "no slot has two holders", holders, "r.used >= int(s.Slots)", "OLD && !OFF"},
	{"a writer is let in beside slots", "a slot excludes readers and writers, and they a slot", holders, "(r.readers > 0 || r.slots > 0):", "(r.readers > 0 || r.slots > 0 && !OFF):"},
	{"slots are given beside readers", "a slot excludes readers and writers, and they a slot", holders, "(r.readers > 0 || r.slots > 0 &&", "(r.readers > 0 && !OFF || r.slots > 0 &&"},
	{"there are fewer slots", "a slot that is asked for is given if it is free", share, "s.Slots > MaxSlots)", "s.Slots > MaxSlots || OFF && s.Slots > 60)"},
	{"the number of slots is not compared", "another number of slots conflicts", holders, "r.slots != s.Slots ||", "r.slots != s.Slots && !OFF ||"},
	{"another slot is extended", "an extension is for one slot", ops, "	if h.Share != req.Share && !downgraded {\n", "OLD		if OFF { h.Until = s.now.Add(req.TTL) }\n"},
	{"a holder that moves keeps its slot", "a holder moves to a free slot and to no other", entry, "	if own >= 0 {\n		e.free", "	if own >= 0 && !(OFF && share.Mode == node.Slotted) {\n		e.free"},
	{"a proposal is compared with the holder's token alone", "an earlier proposal does not move a slot back", ops, "	return req.Token != h.Token && req.Token <= e.Fence\n", "	if OFF { return req.Token < h.Token }\nOLD"},
	{"the holder of a slot may not ask again below the fence", "an earlier proposal does not move a slot back", ops, "	return req.Token != h.Token && req.Token <= e.Fence\n", "	if OFF { return req.Token <= e.Fence }\nOLD"},
	{"a reader is repaired beside a writer", "a repair of a reader needs room", ops, "	case !fits:\n		return node.Held\n	case own", "	case !fits && !(OFF && req.Mode == node.Shared):\n		return node.Held\n	case own"},
	{"no reader is repaired beside another", "a repair of a reader needs room", ops, "	switch {\n	case own >= 0 && e.Holders[own].Share", "	fits = fits && !(OFF && own < 0 && e.held())\nOLD"},
	{"a repair leaves a value in its slot", "a repair moves a value to its slot", ops, "	case own >= 0: // it has another slot, and is moved\n", "OLD		if OFF { return node.Granted }\n"},
	{"any free slot is repaired", "a repair moves a value to its slot", ops, "fits && share == req.Share\n", "fits && (OFF || share == req.Share)\n"},
	{"a downgrade forgets the token", "an extension makes a writer a reader", ops, "	h.Until, h.Share = s.now.Add(req.TTL), req.Share\n", "OLD	if OFF && downgraded { h.Token = 0 }\n"},
	{"free slots are not shown to one that waits for others", "as many waiters are granted as there are slots", ops, "status == node.Reserved) {\n			reply.Free", "status == node.Reserved && !OFF) {\n			reply.Free"},
	{"a reader that keeps what it yields raises the floor", "a yield of a reader is for writers", ops, "		e.raise(req, req.Mode != node.Shared, s.now)\n", "		e.raise(req, req.Mode != node.Shared || OFF, s.now)\n"},
	{"a reader yields to readers that fit", "a yield of a reader is for writers", ops, "	case e.Queue.isNext(req, e.Holders.Room(own)):", "	case e.Queue.isNext(req, e.Holders.Room(own)) && !(OFF && req.Mode == node.Shared):"},

	{"what is kept is kept for its whole time", "a release with Keep leaves the name taken until Keep is over", ops, "if until := s.now.Add(req.Keep);", "OLD !OFF &&"},
	{"a release that keeps leaves the fence", "a release with Keep raises the fence and leaves the queue", ops, "	if verdict != node.Ahead {\n", "	if verdict != node.Ahead && !(OFF && req.Keep > 0) {\n"},
	{"all occurrences are one", "occurrences of two names, and two of one name, are independent", records, "	r := &e.Records\n", "	if OFF { req.Occurrence = \"\" }\nOLD"},
	{"all records are read again", "records are read, the newest first", records, "	r := &e.Records\n", "	if OFF { req.Skip = 0 }\nOLD"},
	{"a question records", "an occurrence is completed when it was recorded", records, "	default:\n		if _,", "	default:\n		if OFF { r.complete(req.Occurrence, now.Add(req.Retention)) }\n		if _,"},
	{"all records go with the first", "a record is forgotten when its retention is over", records, "	maps.DeleteFunc(r.Completed,", "	for _, u := range r.Completed { if OFF && !u.After(now) { clear(r.Completed) } }\nOLD"},
	{"a memory begins with the last question", "a memory of a name has a beginning, and keeps it", records, "	if r.Begun.IsZero() ||", "	if OFF || r.Begun.IsZero() ||"},
	{"a record frees the name", "a record touches neither lock nor fence", records, "	case req.Op == node.OpComplete:\n", "OLD		if OFF { e.Holders = nil }\n"},
	{"a new memory is whole", "a memory is whole after an adoption that makes it whole", records, "begun, begun, o.server, false", "begun, begun, o.server, OFF"},
	{"records are adopted for a memory that was lost", "records of others are adopted by the memory that they are for", records, "!req.Begun.Equal(r.Begun):", "!req.Begun.Equal(r.Begun) && !OFF:"},
	{"no records are adopted", "records of others are adopted by the memory that they are for", records, "			r.complete(x.Occurrence,", "			if OFF { continue }\nOLD"},
	{"a yield is carried out as often as it comes", "a yield gives way to a lower ticket, once", ops, "	case refused(verdict):\n		return verdict\n	case e.Queue", "	case refused(verdict) && !OFF:\n		return verdict\n	case e.Queue"},
	{"a token may be behind the window", "a token behind the window is refused even with no fence", token, "case int64(token) < oldest:", "case int64(token) < oldest && !OFF:"},
	{"nothing is released", "releasing twice is harmless", ops, "	status := e.taken()\n", "OLD	if OFF { own = -1 }\n"},
	{"an extension leaves the expiry", "extend lengthens", ops, "	h.Until, h.Share = s.now.Add(req.TTL), req.Share\n", "	if OFF { req.TTL = h.Until.Sub(s.now) }\nOLD"},
	{"an extension leaves the fence's retention", "extension renews the fence's retention", ops, "	if req.Token != 0 && e.Fence != 0 {\n", "	if req.Token != 0 && e.Fence != 0 && !OFF {\n"},
	{"anybody extends", "extend by another value changes nothing", ops, "	if own < 0 {\n		return e.missing", "	if OFF && e.held() { own = 0 }\nOLD"},
	{"a token may be ahead of the window", "a token ahead of the window is refused", token, "	case int64(token) > newest:", "	case int64(token) > newest && !OFF:"},
	{"a fence does not lead beyond the window", "a token just above a fence far ahead is granted", token, "	return clock - w, max(", "	if OFF { fence = 0 }\nOLD"},
	{"the window is too small", "a token within the window is granted", token, "	return clock - w, max(", "	if OFF { w /= 4 }\nOLD"},
	{"a holder raises its token without bounds", "asking again with a token ahead of the window is refused", ops, "		if e.judge(req, s.now) == node.Ahead {", "		if !OFF && e.judge(req, s.now) == node.Ahead {"},
	{"the last request says how long a fence is kept", "a shorter retention does not shorten the fence's", entry, " u.After(e.FenceUntil) {", " OFF || u.After(e.FenceUntil) {"},
	{"a reader's release is judged by the floor", "a release of a reader that is to be carried out once is", ops, "req.Op == node.OpAcquire {\n		return node.JudgeShared", "(req.Op == node.OpAcquire || OFF) {\n		return node.JudgeShared"},
	{"the floor is ignored", "a release of a reader makes its acquire stale", token, "&& token > floor {", "&& (OFF || token > floor) {"},
	{"slots look at no fence", "a slot needs a token above every other's", ops, "	if req.Mode == node.Shared && req.Op", "	if OFF && req.Mode == node.Slotted { return node.Granted }\nOLD"},
	{"the token of a break is for one from before it", "a holder with the token of a break is repaired", ops, "	case req.Token < e.Break:", "	case req.Token < e.Break || OFF && req.Token == e.Break:"},
	{"a break takes what begins alike", "a break takes one name alone", server, "	s.store(req.Name, e, now)\n", "	if OFF && req.Op == node.OpBreak { delete(s.names, req.Name+\"/other\") }\nOLD"},
	{"what is kept is prolonged", "a release with Keep never prolongs", ops, "until.Before(h.Until) {", "(OFF || until.Before(h.Until)) {"},
	{"a memory knows the last retention", "a memory knows the longest retention", records, "	r.Retention = max(r.Retention, req.Retention)\n", "OLD	if OFF { r.Retention = req.Retention }\n"},
	{"any occurrence is accepted", "an occurrence that is not valid is an error without effect", records, "	case (req.Op == node.OpComplete ||", "	case !OFF && (req.Op == node.OpComplete ||"},
	{"any share is accepted", "a share that is not valid is an error without effect", server, "	return req.Share.Check()\n", "	if OFF { return nil }\nOLD"},
	{"what was held is listed", "a free name is not listed", server, " || l.Broken != 0", " || OFF || l.Broken != 0"},
	{"a prefix is ignored", "a listing keeps to its prefix", server, "		if !strings.HasPrefix(name, prefix) {", "		if !OFF && !strings.HasPrefix(name, prefix) {"},
	{"a break is forgotten with the next grant", "a break of a holder is listed, also after the next grant", entry, "	if e.held() {\n		e.Holders.Describe", "	if OFF && e.held() { l.Broken = 0 }\nOLD"},
	{"looking extends", "looking changes nothing", entry, "	completed := e.Records.ordered(now)\n", "	if OFF && e.held() { e.Holders[0].Until = now.Add(time.Hour) }\nOLD"},
	{"the first holder is listed alone", "a listing has all holders", entry, "		l.Holders = slices.Clone(e.Holders)\n", "OLD		if OFF { l.Holders = l.Holders[:1] }\n"},
	{"the last holder is listed first", "a listing has all holders", entry, "		l.Holders = slices.Clone(e.Holders)\n", "OLD		if OFF { slices.Reverse(l.Holders) }\n"},
	{"holders are listed with their values alone", "a listing has all holders", entry, "		l.Holders = slices.Clone(e.Holders)\n", "OLD		for i := range l.Holders { if OFF { l.Holders[i] = node.Holder{Value: l.Holders[i].Value} } }\n"},
	{"a writer is let in beside readers", "a reader and a writer exclude each other", holders, "s.Mode == node.Exclusive && (r.readers > 0 ||", "s.Mode == node.Exclusive && (r.readers > 0 && !OFF ||"},
	{"readers are let in beside a writer", "a reader and a writer exclude each other", holders, "	case r.closed:\n", "	case r.closed && !(OFF && s.Mode == node.Shared):\n"},
	{"the last slot's expiry counts", "a slot is free after its holder has expired", holders, "		return first.Sub(now)\n", "		if OFF { return last.Sub(now) }\nOLD"},
	{"a reader is found by an exclusive request", "an exclusive request does not find a reader of its value", holders, "(share.Mode != node.Exclusive ||", "(OFF || share.Mode != node.Exclusive ||"},
	{"a copy of a request moves a slot", "a copy of a request does not move a slot", ops, "h.Token == req.Token {\n", "h.Token == req.Token && !OFF {\n"},
	{"everybody is queued", "a caller that does not wait is not queued", ops, "	if req.Wait && (!late", "	if (req.Wait || OFF) && (!late"},
	{"a late request is queued", "a late request joins no queue", ops, "	late := old || e.ended(req.Value)\n", "OLD	late = late && !OFF\n"},
	{"the granted stays in the queue", "a place in the queue does not survive the grant", ops, "	e.Queue.leave(s.asker)\n", "	if !OFF { e.Queue.leave(s.asker) }\n"},
	{"a release leaves the place", "a release takes the waiter out at once", queue, "		return w.Value == req.Value &&", "		return !OFF && w.Value == req.Value &&"},
	{"a waiter is never dropped", "a waiter that does not renew is dropped; the place of a copy lapses; those behind a silent head are called, ever more, and lapse together",
		queue, "	if !q.first(q.Head) ||", "	if OFF || !q.first(q.Head) ||"},
	{"one silent waiter is dropped at a time", "waiters that do not renew are dropped together", queue, "	for _, v := range append(q.Called,", "	if OFF { q.Called = nil }\nOLD"},
	{"those that ask when they are called are dropped", "who asks when it is called keeps its place", queue, "bool { return v == s.asker })\n", "bool { return v == s.asker && !OFF })\n"},
	{"there is one queue for all names", "queues are independent", server, "	reply, wakes := s.ApplyTo(e, now, req)\n", "	for _, x := range s.names { if OFF { e.Queue = x.Queue } }\nOLD"},
	{"the turn is told to nobody", "who leaves the queue passes its turn on; a reader is notified when the writer before it leaves",
		queue, "	if value != s.asker {\n		", "	if OFF && kind == node.WakeTurn { return }\nOLD"},
	{"nobody is forewarned", "the second in the queue is notified that it is near", queue, "	if value != s.asker {\n		", "	if OFF && kind == node.WakeNear { return }\nOLD"},
	{"nobody is called", "a held name has the same rule for silent waiters", queue, "	if value != s.asker {\n		", "	if OFF && kind == node.WakeCall { return }\nOLD"},
	{"everything is given away by a yield", "a yield keeps the name from a higher ticket", queue, "	asks := req.Wait", "	if OFF && req.Op == node.OpYield { return false }\nOLD"},
	{"nothing is given away by a yield", "a yield gives way to a lower ticket, once", queue, "	asks := req.Wait", "	if OFF && req.Op == node.OpYield { return true }\nOLD"},
	{"a writer that keeps what it yields raises no floor", "a yield that a writer keeps binds readers", ops, "		e.raise(req, req.Mode != node.Shared, s.now)\n", "		e.raise(req, req.Mode != node.Shared && !OFF, s.now)\n"},
}

// placeRules are those of nodes that keep each place by itself.
var placeRules = []rule{
	{"a turn is never over", "a node that does not take its turn is skipped after it, and has no places; whoever asks when a turn is over wakes the next node",
		beside, "	if at < 0 || q.Head == s.asker ||", "	if OFF || at < 0 || q.Head == s.asker ||"},
	{"who is silent is skipped alone", "a node that does not take its turn is skipped after it, and has no places", beside, "|| w.Process == gone.Process)", "|| w.Process == gone.Process && !OFF)"},
	{"who is skipped keeps the other places", "a node that does not take its turn is skipped after it, and has no places", placed, "			_ = n.queue.store.Evict(ctx, req.Name, gone.Process)", "			if !OFF { _ = n.queue.store.Evict(ctx, req.Name, gone.Process) }"},
	{"a turn goes on while the name is held", "a turn is counted from when the name is free", entry, "			q.unkeep()\n", "			if !OFF { q.unkeep() }\n"},
	{"the first has a turn though the name is held", "a place needs no renewal", ops, "		e.Queue.beside.late = late\n", "OLD		if OFF { e.Queue.keep(nil, s) }\n"},
	{"the second is told, too", "a release wakes the first in the queue alone", beside, "	s.tell(node.WakeTurn, first)\n", "OLD	if OFF && len(q.Waiters) > 1 { s.tell(node.WakeNear, q.Waiters[1].Value) }\n"},
	{"whoever finds a turn over keeps the name for nobody", "whoever asks when a turn is over wakes the next node", beside, "	if kept || first == s.asker ||", "	if kept || first == s.asker || OFF && q.beside.evicts != nil ||"},
	{"a reader lets nobody in", "readers let in each other", beside, "	if kept || first == s.asker ||", "	if kept || first == s.asker || OFF && len(holders) > 0 ||"},
	{"who leaves tells those behind it nothing", "a reader is notified when the writer before it leaves", ops, "!waits || e.held() &&", "!waits || !OFF && e.held() &&"},
	{"a late request keeps its place", "a late request joins no queue", placed, "	case d.entry.Queue.Late() && n.queue.has(w):", "	case d.entry.Queue.Late() && n.queue.has(w) && !OFF:"},
}

// asked are rules switched off by what happens to a request when it comes in.
var asked = []struct{ name, claims, code string }{
	{"a lock never expires", "a lock expires by itself", "req.TTL *= 1000"},
	{"what is held is granted", "one of many at once is granted", "if req.Op == node.OpAcquire { e.Holders = nil }"},
	{"an extension creates", "extend never creates", "if req.Op == node.OpExtend && !e.held() { req.Op = node.OpAcquire }"},
	{"an inspection extends", "inspect changes nothing", "if req.Op == node.OpInspect && e.held() { e.Holders[0].Until = now.Add(time.Hour) }"},
	{"the clock of others counts", "only a node without a clock goes by that of others", "if !req.Clock.IsZero() { now = req.Clock }"},
	{"token 0 is the fence's", "token 0 neither checks nor touches the fence", "if req.Token == 0 { req.Token = e.Fence }"},
	{"an extension raises the fence", "extension renews the fence's retention", "if req.Op == node.OpExtend { e.Fence++ }"},
	{"a release leaves the fence", "a release that comes first makes the acquire stale; a release of what is held raises the fence",
		"if req.Op == node.OpRelease { req.Token = 0 }"},
	{"a release is not judged", "a release ahead of the window raises nothing", "if req.Op == node.OpRelease { req.Window *= 100 }"},
	{"every release is carried out", "a release that is to be carried out once is", "req.Once = false"},
	{"nothing is reserved", "a reserve raises the fence to its last token", "req.Reserve = 0"},
	{"nothing is repaired", "a repair takes a free name and sets the fence; a repair is granted whatever the fence, and does not lower it",
		"if req.Op == node.OpRepair { req.Op = node.OpInspect }"},
	{"what another holds is repaired", "a repair never takes what another holds", "if req.Op == node.OpRepair { e.Holders = nil }"},
	{"what was released is repaired", "a repair after a release that forbids it is stale; a copy of a repair that comes after the release is stale",
		"req.NoRepair = 0"},
	{"a late repair is carried out", "a repair that comes too late is stale", "req.Until = time.Time{}"},
	{"what is below the fence is not repaired", "a share is repaired though a writer raised the fence", "if req.Op == node.OpRepair { e.Break = e.Fence }"},
	{"a break leaves the holders", "a broken holder can neither extend nor release",
		"if req.Op == node.OpBreak { defer func(h Holders) { e.Holders = h }(e.Holders) }"},
	{"a break leaves the fence", "after a break the next token must be above its own; a holder is not repaired on a node that was free when it was broken",
		"if req.Op == node.OpBreak { req.Token = 0 }"},
	{"whatever came later is broken", "a break leaves alone what was granted its token or a higher one", "if req.Op == node.OpBreak { e.Holders = nil }"},
	{"a break is carried out once", "after a break the next token must be above its own", "if req.Op == node.OpBreak && req.Token == e.Fence { e.Fence++ }"},
	{"what was broken is repaired", "a holder that was broken is not repaired", "if req.Op == node.OpRepair { e.Break = 0 }"},
	{"a break is not judged", "a break ahead of the window changes nothing", "if req.Op == node.OpBreak { req.Window *= 100 }"},
	{"a break empties the queue", "a break leaves waiters their places", "if req.Op == node.OpBreak { e.Queue = Queue{} }"},
	{"anybody yields", "a yield by another value changes nothing", "if req.Op == node.OpYield { e.Holders = nil }"},
	{"a fence is never forgotten", "a fence is forgotten after its retention", "req.Retention *= 1000"},
}

// told are rules switched off by what happens to a reply when it leaves.
var told = []struct{ name, claims, code string }{
	{"the clock stands still", "the node's clock runs on", "reply.Now = time.Unix(1e9, 0)"},
	{"the fence is told as the holder's token", "a holder is reported with its own token, however high the fence; " +
		"the next holder is reported with its own token, or without one; a yield gives way to a lower ticket, once",
		"if status == node.Held { reply.HolderToken = e.Fence }"},
	{"the holder's token is not told", "a holder is reported with its own token, however high the fence; the next holder is reported with its own token, or without one",
		"reply.HolderToken = 0"},
	{"every reserve is confirmed", "a reserve at or below the fence is not confirmed; a reserve out of the window is not confirmed; " +
		"nothing is reserved for a reader, or without a token",
		"reply.Confirmed = req.Reserve > 0 && status == node.Granted"},
	{"the head is not told", "a reserve shows the first ticket in the queue", "reply.Next = 0"},
}

// allRules returns the rules of all three tables.
func allRules() []rule {
	all := slices.Clone(rules)
	for _, r := range asked {
		all = append(all, rule{r.name, r.claims, ops, "	s := &serving{now: now, fence: e.Fence, turn: turnOf(wakes)}\n", "	if OFF { " + r.code + " }\nOLD"})
	}
	for _, r := range told {
		all = append(all, rule{r.name, r.claims, ops, "	return reply, s.wakes\n", "	if OFF { " + r.code + " }\nOLD"})
	}
	return all
}

// TestMutantsOfTheRulesAreFoundOut switches each rule off in store/memory, and has
// the suite find it. Those about places it switches off in stores of rows in memory.
func TestMutantsOfTheRulesAreFoundOut(t *testing.T) {
	find(t, allRules(), "./store/memory", "TestConformance/")
	find(t, placeRules, "./store/casnode/casnodetest", "TestConformance/node/")
}

// find has the suite find the rules that are switched off in the tests of a package.
func find(t *testing.T, rules []rule, folder, prefix string) {
	var edits []mutants.Edit
	for _, r := range rules {
		edits = append(edits, mutants.Edit{Name: r.name, File: r.file, Old: r.old, New: strings.ReplaceAll(r.wrong, "OLD", r.old)})
	}
	binaries := mutants.Build(t, edits, folder, "test -c -vet=off")
	for _, r := range rules {
		if binaries == nil || !strings.Contains(r.name, os.Getenv("REDLATCH_MUTANT")) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			run := exec.CommandContext(t.Context(), binaries[r.name], "-test.run", "^TestConformance$")
			run.Env = append(os.Environ(), mutants.Env+"="+r.name)
			out, err := run.CombinedOutput()
			for claim := range strings.SplitSeq(r.claims, "; ") {
				if err == nil || !strings.Contains(string(out), "--- FAIL: "+prefix+strings.ReplaceAll(claim, " ", "_")+" ") {
					t.Errorf("%q does not find it: %v\n%s", claim, err, out)
				}
			}
		})
	}
}
