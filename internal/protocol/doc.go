// Package protocol is the lock protocol as a state machine, without I/O: no
// network, no clock, no goroutine, no mutex.
//
// # Overview
//
// A Claim is one caller's claim on one name, under one value. Events go in, and
// what is to be done comes out:
//
//	claim.Handle(view, &event, &ready)
//
// Events are a node's answer, a node's notification, the passing of a time, and
// what the caller does. A Ready has news for the caller, requests to send, releases
// that must be sent though the caller has left, and the order of all that: it is
// done field by field. A View answers
// questions about the client and its nodes: the clocks, which nodes are
// suspect, a random number. No question changes anything.
//
// The same code runs in production (the runner around it sends requests and
// keeps the time), in the simulation, and in the exploration of all
// interleavings: a Claim is a plain value that can be copied and compared.
//
// # State model
//
//	New ──▶ Asking ◀──▶ Adopting, Marking
//	 │       │  ▲  ╲
//	 │       ▼  │   ╲ a quorum granted
//	 │      Waiting ──▶ Held ◀──▶ Extending
//	 │       │  ▲       ▲  │          │
//	 │       ▼  │       │  ├──────────┘
//	 │      Yielding    │  ▼
//	 ├──▶ Attaching ────┘ Releasing ──▶ Ending ──▶ Gone
//	 └───────────────────────▲
//
// step.go has one function for each state. These are all transitions; an event
// that is not named for a state does not change it. A round ends by its answers
// or by a Timer.
//
//	New        Begin, Resume                                  Asking
//	           Attach                                         Attaching
//	           Release                                        Releasing
//	Asking     a quorum granted, validity left                Held
//	           a higher token, another slot or a second try   Asking
//	             may succeed
//	           a node has other cluster parameters            Adopting
//	           nodes must be marked                           Marking
//	           nothing of that                                Waiting
//	Adopting   Configured with parameters                     Asking
//	           Configured without: nodes must be marked       Marking
//	           Configured without: otherwise as from Marking  Asking, Waiting
//	           Rejected                                       Ending
//	Marking    Marked, some were; or a higher token or        Asking
//	             another slot may succeed
//	           Marked, none was                               Waiting
//	Waiting    a quorum granted node by node, validity left   Held
//	           Timer: the pause is over                       Asking
//	           the token is too low, or the slots differ      Asking
//	           the round was not won, but some nodes granted  Yielding
//	           Resume                                         Waiting, Asking
//	Yielding   all answered                                   Waiting
//	           all answered, some want a higher token         Yielding
//	Attaching  a quorum extended, validity left               Held
//	           otherwise: nothing of it is ours to undo       Gone
//	Held       Timer, Extend, Downgrade                       Extending
//	Extending  a quorum extended, or the round failed         Held
//	           Downgrade came meanwhile                       Extending
//	           the nodes say "not yours"                      Ending
//	Held, Extending
//	           Release                                        Releasing
//	           Detach                                         Ending
//	           any of these, or a Timer, past the deadline    Ending
//	           Pass, if a quorum has reserved a token         Gone
//	Releasing  decided                                        Ending
//	Ending     no acquisition or repair awaits its answer     Gone
//
// Every state before Held also leads to Ending, by a Cancel. Asking, Adopting and
// Marking do if the last round was the last try, the wait is over, or an answer
// is final (another membership, for example). Asking, Waiting and Yielding do if
// the value must be given up: it may be granted, or freed, by a request that
// nobody can take back. Its successor, with the same ticket and a new value,
// begins in New or in Waiting, by a Resume.
//
//   - Asking sends one request to all nodes at once (ask.go, request.go) and
//     counts the answers (round.go). It leaves out suspect nodes, and those that
//     it has yielded to a holder.
//   - Adopting and Marking wait for the client: for the cluster parameters that
//     the nodes' markers have, and for nodes to be marked (trust.go).
//   - Waiting is the time between two rounds. Nodes notify the claim when the lock
//     is free, and it requests the lock from each of them. Such grants count
//     together if they have one token (partial.go). A timer ends the wait
//     otherwise (wait.go, outage.go).
//   - Yielding frees nodes that granted a round that was not won, so that two
//     callers with a minority each do not wait for each other (yield.go). A node
//     gives the lock to the waiter before this one, or to the holder if a quorum
//     has one. It keeps the grant if nobody else waits there.
//   - Attaching resumes a lease that another process acquired, by an extension. A
//     lease of another process can also be released in New, without attaching.
//   - Held extends the lease at a third of its time to live, if it is kept alive,
//     and repairs nodes that lack it (held.go). If callers wait in the same
//     process, an extension also reserves tokens for them, and the lease is passed
//     on: the claim goes on in the same state, with the same value, as the next
//     caller's lease (pass.go).
//   - Releasing and Ending undo what is left on the nodes, late grants too
//     (end.go). In Gone a request that will never be answered may still be
//     executed: the client keeps its release (Leftover).
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
//  3. One server counts once, even if it has several addresses: Servers before a node
//     is asked, countedTwice at each grant.
//  4. What was sent is undone wherever it may be executed, unless the claim is
//     held or detached. record notes a node that may have something (leftover)
//     before any step looks at the answer; drop, lose, release and undoLate send
//     the release. A node that has not answered is undone when it does, or, if it
//     executes in order, by the release of the lease (release); an answer to what
//     was sent again is undone even so (undoLate).
//  5. A release makes every earlier request of the claim stale: its token is no
//     lower than any proposal that may be in flight (releaseRequest). A yield that
//     comes later finds nothing to free.
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
//  10. A lease that was passed on has a token that a quorum had reserved after its
//     caller came, and the deadline of the lease before it: MayPass, Heir.
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
