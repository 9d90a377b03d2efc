// Package supervise runs a command under a lease, and ends it, with everything
// that it started, before the lease ends.
//
// # Processes
//
// CMD runs in a process group of its own; on Windows, in a job object. What CMD
// starts is in that group too, unless it leaves it. A guardian, which is this
// program once more, sits in the group and ends it if we are killed or stopped
// (guardian_unix.go, guard_unix.go). CMD does not start before the guardian is
// there (gate_unix.go).
//
//	redlatch ──── pipe ────┐
//	   │                   ▼
//	   │ signals     ┌─ guardian ─ CMD ─ what CMD started ─┐
//	   └────────────▶│          one process group          │
//	                 └─────────────────────────────────────┘
//
// # States
//
// The state is that of the group, not of CMD alone: when CMD exits and leaves
// processes behind, these are ended as well.
//
//	          CMD starts            CMD exits and leaves others      grace over
//	                                lease runs low                   second interrupt
//	starting ────────────▶ running ────────────────────▶ stopping ──────────────────▶ killed
//	   │                     │ │                             │                          ▲ │
//	   │                     │ └── --on-lost kill, second interrupt ────────────────────┘ │
//	   │ CMD cannot be run   │ nothing is left             │ nothing is left              │ nothing is left
//	   │ lease too short     │                             │                              │ patience over
//	   └─────────────────────┴──────────▶ ended ◀──────────┴──────────────────────────────┘
//
// In stopping the group has been sent TERM, in killed KILL. A signal that we
// receive is forwarded to the group and changes no state, except a second
// interrupt. An extension of the lease does not lead back from stopping.
//
// # What Run guarantees
//
//  1. When Run returns, the group is empty, unless the result is Unended or a
//     warning said that a process did not end though it was killed.
//  2. With OnLost Term the group gets TERM when the lease has one grace left,
//     and KILL when it has a quarter of that left. With Kill it gets the KILL
//     alone. See Plan.
//  3. If we are killed, the guardian sends the group TERM at once, and KILL
//     after the grace. If we are stopped, it sends KILL before the lease ends.
//  4. A terminal that is ours is CMD's while it runs, and ours again when Run
//     returns.
package supervise
