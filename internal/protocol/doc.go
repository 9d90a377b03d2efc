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
// suspect, a random number. No question changes anything. The same code runs in production (the runner around
// it sends requests and keeps the time), in the simulation, and in the
// exploration of all interleavings: a Claim is a plain value that can be copied
// and compared.
//
// # State model
//
//	      Begin   ┌──────────┐  parameters differ   ┌──────────┐
//	 New ────────▶│  Asking  │─────────────────────▶│ Adopting │
//	  │           │          │◀─────────────────────│          │
//	  │           │          │  adopted: repeated   └──────────┘
//	  │           │          │                           │ nothing adopted
//	  │           │          │   markers missing    ┌────▼─────┐
//	  │           │          │─────────────────────▶│ Marking  │
//	  │           │          │◀─────────────────────│          │
//	  │           └──────────┘  marked: repeated    └──────────┘
//	  │    refused │        ▲                            │ nothing marked
//	  │            ▼        │ the pause is over          │
//	  │           ┌──────────┐                           │
//	  │           │ Waiting  │◀──────────────────────────┘
//	  │           │          │  a minority granted  ┌──────────┐
//	  │           │          │─────────────────────▶│ Yielding │
//	  │           │          │◀─────────────────────│          │
//	  │ Attach    └──────────┘     all answered     └──────────┘
//	  ▼                │
//	┌───────────┐      │ a quorum granted: node by node,
//	│ Attaching │────┐ │ or in a round (from Asking)
//	└───────────┘    ▼ ▼
//	  a quorum    ┌──────────┐     Extend, Timer    ┌───────────┐
//	  extended    │   Held   │─────────────────────▶│ Extending │
//	              │          │◀─────────────────────│           │
//	              └──────────┘       decided        └───────────┘
//	               │        │                        │       │
//	       Release │        │ the deadline,          │       │ Release
//	       (or New)│        │ "not yours", Detach    │       │
//	               ▼        └──────────────┐         │       │
//	              ┌───────────┐            │         │       │
//	              │ Releasing │◀───────────┼─────────┼───────┘
//	              └───────────┘            │         │
//	               │ decided               │         │
//	               ▼                       ▼         ▼
//	              ┌──────────────────────────────────────────┐  no acquisition, ┌──────┐
//	              │                  Ending                  │─────────────────▶│ Gone │
//	              └──────────────────────────────────────────┘  no repair in    └──────┘
//	                 ▲                                          flight
//	                 │ from every state before Held: Cancel, no more tries,
//	                 │ or replaced by a successor
//
// step.go has one function for each state. Each names the events that matter
// there; all others change nothing. A round ends by its answers or by a Timer.
//
//   - Asking sends one request to all nodes at once (ask.go, request.go) and
//     counts the answers (round.go). If only the token was refused, the round is
//     repeated with a higher one (token.go). A broken round may be repeated too.
//   - Adopting and Marking wait for the client: for the cluster parameters that
//     the nodes' markers have, and for nodes to be marked (trust.go).
//   - Waiting is the time between two rounds (wait.go, outage.go). Nodes notify
//     the claim when the lock is free, and it requests the lock from each of them:
//     partial grants, of one token (partial.go).
//   - Yielding gives the grants of a minority to the waiters before it (yield.go).
//   - Attaching resumes a lease that another process acquired, by an extension. If
//     that fails the claim is Gone at once: nothing of it is ours to undo. A New
//     claim of another process can also be released without it.
//   - Held extends the lease at a third of its time to live (Extending) and
//     repairs nodes that lack it (held.go).
//   - Releasing, Ending: what is left on the nodes is undone, late grants too
//     (end.go).
//
// A value that was given up is never used again: Replace ends the claim, and its
// successor, with the same ticket and a new value, begins in New or in Waiting.
//
// # Invariants
//
//  1. A lease is valid only within the time to live of a majority of keys. Its
//     deadline is counted from before the first request was sent, less the drift:
//     win and settleExtend add Validity(TTL, 0) to the start of the round.
//  2. A majority is counted among grants of one value and one token. ask begins
//     each round with every node Pending. pause begins partial grants with the
//     token of the round before it, and adds only what stays ours by a node's word
//     (yieldOver); requestFrom begins them with a new token and an empty set.
//     isLastReply and applyReply ignore older answers.
//  3. One server counts once, even if it has several addresses: countedTwice.
//  4. What was sent is undone wherever it may be executed, unless the claim is
//     held or detached. record notes a node that may have something (leftover)
//     before any step looks at the answer; drop, lose, release and undoLate send
//     the release. A node that has not answered is undone when it does.
//  5. A release makes every earlier request of the claim stale: its token is no
//     lower than any proposal, or yield, that may be in flight (releaseRequest).
//  6. A value that has been asked to be freed at a node, with an uncertain
//     outcome, is not built on: stepYielding and onYieldReply replace it.
//  7. A deadline never moves back, and moves only when a majority has confirmed:
//     settleExtend. A lease past its deadline is not revived: extend, settleExtend
//     and the step functions of a lease look at the clock first.
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
//	A  Begin                 Asking     Send acquire to 1, 2, 3 with token 100
//	A  1 and 2 grant         Held       deadline = start + TTL - drift; 3 grants later
//	B  Begin                 Asking     Send acquire to 1, 2, 3 with token 250
//	B  all answer Held by A  Waiting    queued first on every node; looks again after 400 ms
//	C  Begin, all Held by A  Waiting    queued second, behind B's ticket
//	A  is paused             -          its Timer event is not delivered; no extension is sent
//	   the keys expire
//	B  Timer                 Asking     Send acquire with token 9000
//	B  1 and 2 grant         Held       token 9000 is above the fence, which is 100
//	C  Timer, Held by B      Waiting    asks again, and is queued first
//	A  wakes up: Timer       Ending     the deadline has passed: Ended (Expired), clean up on
//	                                    1, 2, 3. Its release names A's value, so B's keys stay
//	A  writes with token 100 -          the resource has seen 9000, and refuses
//	B  Release               Releasing  Send release to 1, 2, 3; the first to be free notify C
//	C  Wake from 2           Waiting    Send acquire to 2, with a token above B's; then to 1 and 3
//	C  1 and 2 grant         Held
package protocol
