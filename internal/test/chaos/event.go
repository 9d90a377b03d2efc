//go:build unix

package chaos

import contract "github.com/redlatch/redlatch/node"

// Kind is what an Event reports.
type Kind string

// The steps of a client.
const (
	Ask      Kind = "ask"      // it begins to ask for a lock
	Got      Kind = "got"      // it has a lease, until Deadline
	Missed   Kind = "missed"   // it has none, because of Err
	Read     Kind = "read"     // it claimed the resource and read the counter From
	Wrote    Kind = "wrote"    // the resource took the counter To, read as From
	Refused  Kind = "refused"  // the resource refused the token
	Failed   Kind = "failed"   // the resource could not be asked, because of Err
	Extend   Kind = "extend"   // it begins to extend the lease
	Extended Kind = "extended" // the lease is valid until Deadline; with Err, as before
	// It stops writing, and begins to downgrade the lease: it is a reader's from now on.
	Downgrade  Kind = "downgrade"
	Downgraded Kind = "downgraded" // that was confirmed, or not, because of Err
	Lost       Kind = "lost"       // the lease has ended otherwise than by a release
	Release    Kind = "release"    // the client stops using the lease, and begins to release it
	Released   Kind = "released"   // the release has returned, with Err if it was not confirmed
)

// Event is a step of a client: a line of its history.
type Event struct {
	At     int64                   `json:"at"` // on the clock that all processes share
	Kind   Kind                    `json:"kind"`
	Client int                     `json:"client"`
	Life   int                     `json:"life"` // which of the processes that were this client
	Seq    int                     `json:"seq"`  // which of its attempts
	Name   string                  `json:"name,omitempty"`
	Share  `json:"share,omitzero"` // what was asked for, and with Got what was given

	Token    uint64 `json:"token,omitempty,string"`
	Deadline int64  `json:"deadline,omitempty"`
	Keep     int64  `json:"keep,omitempty"` // with Got: for how long the lock stays taken from then on
	From     int64  `json:"from,omitempty"` // the counter that was read
	To       int64  `json:"to,omitempty"`   // the counter that was written
	Part     string `json:"part,omitempty"` // whose counter that is
	Step     Step   `json:"step,omitempty"` // what was done, or refused, at the resource
	Err      string `json:"err,omitempty"`
	Stall    int64  `json:"stall,omitempty"` // with Err: how long the machine stalled at most
}

// Count is something that is counted.
type Count string

// The counts.
const (
	Writers     Count = "acquired by writers"
	Downgrades  Count = "writers that became readers"
	Readers     Count = "acquired by readers"
	MostReaders Count = "readers at once, at most"
	Slots       Count = "acquired slots"
	MostSlots   Count = "slots at once, at most"
	Kept        Count = "kept after their release"
	Misses      Count = "attempts without a lock"
	Losses      Count = "leases lost"
	Writes      Count = "writes"
	Reads       Count = "reads"
	Refusals    Count = "stale steps refused"
)

// counts are all of them, as they are printed.
var counts = []Count{Writers, Downgrades, Readers, MostReaders, Slots, MostSlots, Kept, Misses, Losses, Writes, Reads, Refusals}

// Counts is how often each happened.
type Counts map[Count]int

// Acquisitions returns how many locks were acquired.
func (n Counts) Acquisitions() int { return n[Writers] + n[Readers] + n[Slots] }

// count counts what the events report.
func count(events []Event) Counts {
	n := Counts{}
	for _, e := range events {
		switch e.Kind {
		case Got:
			n[map[contract.Mode]Count{Writer: Writers, Reader: Readers, Slot: Slots}[e.Mode]]++
			if e.Keep > 0 {
				n[Kept]++
			}
		case Downgraded:
			if e.Err == "" {
				n[Downgrades]++
			}
		case Missed:
			n[Misses]++
		case Refused:
			n[Refusals]++
		case Lost:
			n[Losses]++
		}
	}
	return n
}

// Span is a stretch of time.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// meets reports whether two stretches overlap.
func (s Span) meets(from, to int64) bool { return s.From <= to && from <= s.To }

// Fault is a fault that was injected.
type Fault struct {
	Family string `json:"family"`
	Beyond bool   `json:"beyond"`
	Node   int    `json:"node,omitempty"`   // from 1; 0 if it hit no node
	Client int    `json:"client,omitempty"` // from 1; 0 if it hit no particular client
	Detail string `json:"detail"`
	Span
	// Breaks are the stretches in which an assumption was broken. Locks that
	// were held then may be gone early, and tokens forgotten.
	Breaks []Span `json:"breaks,omitempty"`
	// Broken are the locks that an operator broke.
	Broken []Broken `json:"broken,omitempty"`
	Err    string   `json:"err,omitempty"` // why it could not be injected or healed
}

// Broken is a lock that was broken: leases up to a token have lost it.
type Broken struct {
	Name  string `json:"name"`
	Token uint64 `json:"token,string"`
	Sure  bool   `json:"sure"` // the break succeeded
	Span
}

// Step is what a holder does at the resource.
type Step string

// The steps.
const (
	Write Step = ""      // a writer, or the holder of a slot, writes
	Claim Step = "claim" // it reads, and will write
	Look  Step = "read"  // a reader reads
)

// Row is an accepted step, in the order of the resource.
type Row struct {
	Name   string `json:"name"` // of the part
	Step   Step   `json:"step,omitempty"`
	Token  uint64 `json:"token,string"`
	Client int    `json:"client"`
	Was    int64  `json:"was"` // the counter as the holder had read it
	Is     int64  `json:"is"`  // what it wrote; the same unless the step is a write
}
