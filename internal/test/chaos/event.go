//go:build unix

package chaos

// Kind is what an Event reports.
type Kind string

// The steps of a client.
const (
	Ready    Kind = "ready"    // the client is up
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
	Done       Kind = "done"       // the client ends, as ordered
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
	Part     string `json:"part,omitempty"` // whose counter that is; absent for the name's own
	Step     Step   `json:"step,omitempty"` // what was done, or refused, at the resource
	Err      string `json:"err,omitempty"`
	Stall    int64  `json:"stall,omitempty"` // with Err: how long the machine stalled at most
}

// Counts is how often something happened.
type Counts struct {
	Acquisitions int `json:"acquisitions"`
	Missed       int `json:"missed"`
	Writes       int `json:"writes"`
	Reads        int `json:"reads"`         // by readers
	Refused      int `json:"refused"`       // stale steps that the resource refused
	RefusedReads int `json:"refused_reads"` // those of them that were readers'
	Lost         int `json:"lost"`          // leases that ended before they were released

	Writers    int `json:"writers"` // of the acquisitions
	Readers    int `json:"readers"`
	Slots      int `json:"slots"`
	Downgrades int `json:"downgrades"` // writers that became readers
	Kept       int `json:"kept"`       // locks that stayed taken after their leases ended
}

func (c *Counts) count(e Event) {
	read := b2i(e.Step == Look)
	switch e.Kind {
	case Got:
		c.Acquisitions++
		c.Kept += b2i(e.Keep > 0)
		c.Writers += b2i(e.Mode == Writer)
		c.Readers += b2i(e.Mode == Reader)
		c.Slots += b2i(e.Mode == Slot)
	case Downgraded:
		c.Downgrades += b2i(e.Err == "")
	case Missed:
		c.Missed++
	case Read:
		c.Reads += read
	case Wrote:
		c.Writes++
	case Refused:
		c.Refused++
		c.RefusedReads += read
	case Lost:
		c.Lost++
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
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
	// were held then may be gone early.
	Breaks []Span `json:"breaks,omitempty"`
	// Forgets says that fencing tokens may have been forgotten without notice.
	Forgets bool   `json:"forgets,omitempty"`
	Err     string `json:"err,omitempty"` // why it could not be injected or healed
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
