// Package explore searches everything that can happen to a few claims on a few
// nodes. It runs the code that is shipped: the claims are protocol.Claim values,
// and the nodes are nodestate.Server values.
//
// A State holds claims, servers, the requests in flight and the time, in ticks.
// A step is one thing that happens: a claim begins, a node executes a request,
// an answer gets lost, a tick passes, a node restarts without its data. Next
// lists every step that is possible. Search takes them all, breadth first, and
// finds the shortest way to a state that must not be. States that differ only in
// what can make no difference are one: see canonical.go and drop.go.
//
// An Instance says how many clients and nodes there are, which faults happen and
// how often, and which of its parameters are made wrong. A search that finds
// nothing is worth as much as the same search finds with a rule switched off:
// Rules lists them. A rule that is a parameter is switched off in the instance,
// any other by a changed line of the code (mutants_test.go).
//
// docs/testing/model.md says what is explored, what is left out, and what was
// found.
package explore
