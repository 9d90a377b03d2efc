// Package protocol is the lock protocol as a state machine, without I/O: no
// network, no clock, no goroutine, no mutex.
//
// # Overview
//
// A Claim is one caller's claim on one name, under one value. Events go in,
// effects come out:
//
//	effects = claim.Handle(view, &event, effects)
//
// Events are a node's answer, a node's notification, the passing of a time, and
// what the caller does. Effects are requests to send, releases that must be
// sent though the caller has left, and news for the caller. A View answers
// questions about the client and its nodes: the clocks, which nodes are
// suspect, a random number. The same code runs in production (the runner around
// it sends requests and keeps the time), in the simulation, and in the
// exploration of all interleavings: a Claim is a plain value that can be copied
// and compared.
//
// # State model
//
//	                                  quorum granted in time
//	      Begin      ┌────────┐ ─────────────────────────────────▶ ┌──────┐ ⟲ Extend,
//	New ───────────▶ │ Asking │                                    │ Held │   repair
//	                 └────────┘ ◀──┐                               └──────┘
//	         refused │   ▲ ▲       │ repeat with other parameters,    │ Release, Detach,
//	                 │   │ │       │ marked nodes, a higher token     │ the deadline, or
//	                 ▼   │ │    ┌──┴───────┐                          │ "not yours" from
//	           ┌─────────┐ └───▶│ Adapting │                          │ a majority
//	           │ Waiting │      └──────────┘                          ▼
//	           └─────────┘ ──── gave up, or replaced ──────────▶ ┌────────┐      ┌──────┐
//	             ⟲ offers, yields                                │ Ending │ ───▶ │ Gone │
//	             └── a quorum offered it ──▶ Held                └────────┘      └──────┘
//	                                                              no request in flight
//
// Asking sends one request to all nodes at once (ask.go, request.go) and counts
// the answers (round.go). If only the token was refused, the round is repeated
// with a higher one (token.go). Waiting is the time between two rounds
// (wait.go): nodes notify the claim when the lock is free, and it gathers their
// grants one by one (gather.go). Grants that are no majority it yields to the
// waiters before it (yield.go). A value that was given up is never used again:
// the claim is replaced by its successor, with the same ticket and a new value.
// Held extends the lease at a third of its time to live and repairs nodes that
// lack it (held.go). Ending undoes what is left on the nodes, and late grants
// (end.go).
//
// # Invariants
//
//  1. A lease is valid only within the time to live of a majority of keys. Its
//     deadline is counted from before the first request was sent, less the drift:
//     win and extended add Validity(TTL, 0) to the start of the round.
//  2. A majority is counted among grants of one value and one token. ask begins
//     each round with every node Pending. pause begins a gathering with the token
//     of the round before it, and adds only what a node confirms to have kept
//     (yieldOver); offered begins one with a new token and an empty set. taken and
//     takeIn ignore older answers.
//  3. One server counts once, even if it has several addresses: countedTwice.
//  4. What was sent is undone wherever it may be executed, unless the claim is
//     held or detached. record notes a node that may have something (leftover)
//     before anything else looks at the answer; drop, lose, release and late send
//     the release. A node that has not answered is undone when it does.
//  5. A release makes every earlier request of the claim stale: its token is no
//     lower than any proposal, or yield, that may be in flight (releaseRequest).
//  6. A value that has been asked to be freed at a node, with an uncertain
//     outcome, is not built on: yielded and waitOver replace it.
//  7. A deadline never moves back, and moves only when a majority has confirmed:
//     extended. A lease past its deadline is not revived: extend, extended and
//     release look at the clock first.
//  8. A repair is sent only for a lease that a majority has just granted or
//     extended, and never counts. A node refuses one that arrives after its
//     sender has stopped waiting for the answer: sendRepair sets Until.
//  9. A slot counts by itself: a majority is counted among grants of one slot
//     (agreed, counts). A claim that has won never moves to another slot: a node
//     that gave another one is repaired (misplaced), and a value that a late
//     request of its own could move is given up (mayBeMoved).
//
// # Example
//
// Three nodes 1, 2, 3. A holds the lock, B and C wait, A is paused.
//
//	A  Begin                 Asking   Send acquire to 1, 2, 3 with token 100
//	A  1 and 2 grant         Held     deadline = start + TTL - drift; 3 grants later
//	B  Begin                 Asking   Send acquire to 1, 2, 3 with token 250
//	B  all answer Held by A  Waiting  queued first on every node; looks again after 400 ms
//	C  Begin, all Held by A  Waiting  queued second, behind B's ticket
//	A  is paused             -        its Timer event is not delivered; no extension is sent
//	   the keys expire
//	B  Timer                 Asking   Send acquire with token 9000
//	B  1 and 2 grant         Held     token 9000 is above the fence, which is 100
//	C  Timer, Held by B      Waiting  asks again, and is queued first
//	A  wakes up: Timer       Ending   the deadline has passed: Ended (Expired), clean up on
//	                                  1, 2, 3. Its release names A's value, so B's keys stay
//	A  writes with token 100 -        the resource has seen 9000, and refuses
//	B  Release               Ending   Send release to 1, 2, 3; the first to be free notify C
//	C  Wake from 2           Waiting  Send acquire to 2, with a token above B's; then to 1 and 3
//	C  1 and 2 grant         Held
package protocol
