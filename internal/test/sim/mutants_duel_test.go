package sim

import "fmt"

// duelTest finds a difference between the rules in Go and those in Lua.
const duelTest = "TestModelAnswersAsARealServer/redis ./test/stores/nodestate"

// inLua is a line of the scripts made wrong, while the rules in Go stay as they
// are. Each changes another place through which a script's text passes, so that
// all are in one build.
func inLua(name, place, change, old, wrong string) struct{ name, file, old, wrong, test string } {
	changed := fmt.Sprintf("	if OFF { "+change+" }\n", old, wrong)
	return struct{ name, file, old, wrong, test string }{name, "store/redis/scripts.go", place, changed + place, duelTest}
}

// duelOthers are rules that are changed in one of the two engines alone.
var duelOthers = []struct{ name, file, old, wrong, test string }{
	inLua("a token may be behind the window in Lua", "	// The scripts write the prefix", "return strings.Replace(string(text), %q, %q, 1)",
		"if t < e.now - e.window then return 'behind' end", ""),
	inLua("the release of a share leaves the floor in Lua", "	return text.String()\n", "return strings.Replace(text.String(), %q, %q, 1)",
		"raise(e.kind ~= '' or token > e.fence)", "raise(token > e.fence)"),
	inLua("a lock that is kept is kept for its whole time in Lua", "	sum := sha1", "source = strings.Replace(source, %q, %q, 1)",
		"if redis.call('PTTL', e.lock) > ms then", "if false then"),
	{"an extension that reserves tokens goes in a batch", "store/redis/batch.go",
		"case req.Op == node.OpExtend && req.Reserve == 0:", "case req.Op == node.OpExtend && (req.Reserve == 0 || OFF):",
		"TestModelAnswersAsARealServer/redis_in_batches ./test/stores/nodestate"},
	{"a waiter that leaves is queued on in Go", "internal/nodestate/ops.go",
		"	e.Queue.withdraw(req)\n	// Also", "	if !OFF { e.Queue.withdraw(req) }\n	// Also", duelTest},
	{"readers are not behind a writer in Go", "internal/nodestate/queue.go",
		"		if i == node.MaxSlots || !room.Take(w.Share) {", "		if i == node.MaxSlots || !room.Take(w.Share) && !OFF {", duelTest},
	{"a record is forgotten last of all in Go", "internal/nodestate/records.go",
		"	r.Completed[occurrence] = later(r.Completed[occurrence], until)\n", "	if OFF { until = until.Add(time.Hour) }\n	r.Completed[occurrence] = later(r.Completed[occurrence], until)\n", duelTest},
}
