package casnode_test

import (
	"testing"

	"github.com/redlatch/redlatch/internal/test/mutants"
)

// TestEveryMutantOfThePlacesIsFound switches off one rule of the queue in places at a
// time.
func TestEveryMutantOfThePlacesIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the code anew")
	}
	const places, queue, cache, ops, shelf = "store/casnode/places.go", "store/casnode/queue.go", "store/casnode/cache.go", "internal/nodestate/ops.go", "internal/test/clockless/places.go"
	const orders, every = "TestRandomOrderOfStatements", "TestEveryOrderOfStatements"
	const dead = "TestDeadProcessDelaysOthersByOneTurn"
	findMutants(t, []mutant{
		{mutants.Change("a release does not look after its commit", queue,
			"	if d.row != nil && [+!OFF && +]n.ears.store != nil && !d.entry.Kept(waiters(present.Places)) {"), orders},
		{mutants.Change("a waiter does not look after its place is put", "store/casnode/node.go",
			"	if waits && !n.queue.has(waiter{name, req.Value}) {\n[+		before := s\n+]		if s, err = n.put(ctx, req); err == nil {\n[+			if OFF { s = before }\n+]"), every},
		{mutants.Change("a take does not look before it", queue,
			"	first := waiters(s.Places)\n[+	if OFF && req.Op == node.OpAcquire { first = nil }\n+]	fresh :="), "TestTakeLooksForThoseBeforeIt"},
		{mutants.Change("nobody watches a reservation", ops,
			"	if status == node.Reserved && req.Op == node.OpAcquire && s.watch [+&& !OFF +]{"), dead},
		{mutants.Change("a place outlives its process", shelf,
			"p.Name == name) && [-s.Uptime() < s.lived[p.Process]-][+(OFF || s.Uptime() < s.lived[p.Process])+] {"), dead},
		{mutants.Change("a wake is not passed on", "store/casnode/ears.go",
			"wake.Kind == node.WakeTurn [+&& !OFF +]{\n			go n.forsaken(w)"), orders},
		{mutants.Change("a doubt is forgotten", places, "	p.unsure = [-true-][+!OFF+]"), orders},
		{mutants.Change("every release is sure", places, "	return [+OFF || +]known && !p.unsure"), orders},
		{mutants.Change("every row is fresh", places, "	return [+OFF || +]now-seen.since < nodestate.FreshFor"), orders},
		{mutants.Change("who was dead is said to have been put before", queue, "	if !lived [+&& !OFF +]{"), "TestProcessThatWasTakenForDeadPutsItsPlacesAnew"},
		{mutants.Change("a process evicts itself", queue, "		if gone.Process != n.queue.process [+|| OFF +]{"), "TestProcessKeepsThePlacesOfOthersThatMissNoTurn"},
		{mutants.Change("a waiter that leaves hears its turn", places, "	return p.Name != \"\" && [-!p.leaving-][+(OFF || !p.leaving)+]"), "TestWakeForOneThatLeavesIsPassedOn"},
		{mutants.Change("a release from the cache leaves its place", cache, "		req.Op == node.OpRelease && [+!OFF && +]n.queue.placed("), "TestReleaseFromMemoryLeavesNoPlace"},
		{mutants.Change("a place that comes late is not removed", queue, "	if p.Name != \"\" && [+!OFF && +]!n.queue.has(w) {"), "TestPlaceThatComesAfterItsWaiterHasLeftIsRemoved"},
		{mutants.Change("who leaves while it asks has a place", places, "	return [+OFF || +]!p.gone\n"), "TestPlaceThatComesAfterItsWaiterHasLeftIsRemoved"},
		{mutants.Change("what is passed on is passed on once", queue, "	return err != nil || done && [+(OFF || +]e.Kept(waiters(present.Places))[+)+]"), "TestNameIsPassedOnUntilSomebodyIsThere"},
		{mutants.Change("no row is fresh", places, "	return [+!OFF && +]now-seen.since <"), "TestNameThatCameFreeIsLeftToTheFirstForAMoment"},
		{mutants.Change("nobody passes on", queue, "	for range mostPasses {\n[+		if OFF { return }\n+]"), orders},
	})
}
