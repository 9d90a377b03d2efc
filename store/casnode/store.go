package casnode

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// Row is a row of a store.
type Row struct {
	// Name is any bytes, up to 1024. MarkerName is the marker's.
	Name string
	// Version is a random text of letters and digits, up to 32 bytes, and new for
	// every write. It is "" if there is no row.
	Version string
	// State is any bytes: some 100, with many waiters or readers up to megabytes.
	// It is not empty in a Swap.
	State []byte
	// Timers are the timers of the row that run, in a Snapshot of a store that has
	// Timers. Others leave it nil.
	Timers []string
}

// MarkerName is the name of the row with the marker. It is no name of a lock.
const MarkerName = ""

// Snapshot is what a store has at one moment after Read was called.
type Snapshot struct {
	Row    Row // of the name that was asked for
	Marker Row
	// Now is the store's clock, the time of day in whole microseconds. A finer
	// one is truncated. It is zero if the store has no clock that all clients can
	// use: then the Node observes how time passes. Such a store keeps fences.
	Now time.Time
	// Server identifies the server. It changes when the server may have
	// forgotten what it acknowledged. It is never empty.
	Server string

	// Offset is for a store whose clock ends with the machine's, such as a file.
	// Others leave it zero.
	// Offset is what a stored time of expiry lacks to be on Now's clock, in whole
	// microseconds. It is not 0 if locks expire by another clock than the one
	// tokens are compared with.
	Offset time.Duration
	// KeepsFences says that the store forgets no fence: one binds when its
	// retention is over. Floor is then the highest fence of all rows that were
	// removed. A Swap that inserts a row compares the floor, too.
	KeepsFences bool
	Floor       node.Token

	// Places are the first FirstPlaces of the name's queue, in order, of processes
	// that live. Rank is that of the place that was put, or more. See Placer.
	Places []Place
	Rank   int

	begins  time.Time     // by when the queue is judged; zero for Now
	by      *observer     // nil if the store has a clock
	up      time.Duration // when it was read, by the observer's clock
	ahead   time.Duration // how far Now is ahead of the observer's clock
	since   time.Duration // when its row was first seen as it is
	scanned bool          // the row is from a Scan
	// recalled says that it is from the cache, and may be wrong: a sight of it must not
	// replace that of a newer row.
	recalled bool
	overdue  bool // the marker's quarantine is over, and its row does not say so
	decoded  *nodestate.Marker
}

// Store is a store that can compare and swap. Errors of Read and Scan say that
// nothing was done. They and those of Swap may wrap ErrUnprepared.
type Store interface {
	// Read returns the row of a name, and what belongs to it.
	Read(ctx context.Context, name string) (Snapshot, error)
	// Scan returns up to limit rows behind a name, in the order of the bytes of
	// their names. limit is 1 or more. Fewer rows mean that there are no more.
	// The marker is not among them. A row that is written meanwhile may be in it
	// or not. The identity need not be checked.
	Scan(ctx context.Context, after string, limit int) ([]Row, error)
	// Swap writes a row if the row of that name, the marker and the server's
	// identity are those of seen, all of it in one statement or transaction. It
	// reports whether it did. If the row is the marker, seen.Row is what was read of
	// it: that and the identity are compared, and seen.Marker is ignored. Two kinds of
	// write compare more: one that inserts a row also the floor, if the store keeps fences
	// (Snapshot.KeepsFences), and one that is Stamped also the clock (Stamper).
	//
	// present is what Read would return after that. If nothing was written, it may be
	// empty. If the row was written, only the places and the server of it count, and
	// those only with Write.Look: if the look fails, done is true and the places are
	// those of seen.
	//
	// An error that wraps node.ErrUnsent promises that nothing was written, and
	// will not be. After any other error it may be written now, later or never.
	// If in doubt, do not wrap it: after a commit was sent, only if the server
	// answers that it rolled back.
	Swap(ctx context.Context, seen Snapshot, w Write) (done bool, present Snapshot, err error)
	// String names the store in errors and in the membership, like an address.
	// All clients use the same name, and other stores have another one. So it has
	// no user in it, and no password: no @. It has no space.
	String() string
	// Close frees its resources. Methods that are called later return errors.
	Close() error
}

// Write is what a Swap writes.
type Write struct {
	Row Row
	// Wakes are sent if the row was written. A store that is neither a Hearer nor a
	// Ringer ignores them.
	Wakes []Wake
	// Stamped says that nobody has read the row and the marker together, and that
	// the clock is a guess; see Stamper.
	Stamped bool
	// Drop is a place that is removed with the write, if it is there, and Look says
	// that the places after the write are needed; see Placer. With Near those from
	// before it will do, too, but for Drop: nobody else can have the name after it.
	Drop       *Place
	Look, Near bool
}

// Wake is a text for a process: of letters, digits, spaces, + and /, up to 2,000. It
// may get lost. In a Placer each is for a process; elsewhere it has none, and is for
// all. Waiter is whose place the row is kept for: a Swap that is refused if that is gone
// need not look at the places after it.
type Wake struct{ Process, Text, Waiter string }

// Preparer is implemented by a store that has to be prepared, such as one whose
// table must be created.
type Preparer interface {
	// Prepare is called before the first use, again as long as it fails, and
	// again after an error that wraps ErrUnprepared. Several processes may call
	// it at once, and perhaps may not create what is there already. It keeps the
	// rows.
	Prepare(ctx context.Context) error
}

// ErrUnprepared is wrapped by the errors of a store that must be prepared again:
// its table is missing, or another server has taken its place. Nothing was done.
var ErrUnprepared = errors.New("the store must be prepared again")

// Sweeper is implemented by a store that can remove rows. Without it they stay for
// ever, one for each name that was ever used.
type Sweeper interface {
	// Remove removes those of the rows that still have the same version, if the
	// server is the one of seen. It may leave any of them. There is at least one
	// row, and the marker is not among them. A store that keeps fences
	// (Snapshot.KeepsFences) raises its floor to seen.Floor with it.
	Remove(ctx context.Context, seen Snapshot, rows []Row) error
}

// Hearer is implemented by a store that can deliver texts to its clients.
type Hearer interface {
	// Hear calls heard with each wake for a process, until ctx ends or the connection
	// breaks. It may also call it with those for others. It calls ready when none is
	// missed from then on. It returns why it ended, and calls neither of them after
	// that. A Node runs one at a time, after Prepare, and ends it before it closes the
	// store. It is no request: Options.Requests does not count it.
	Hear(ctx context.Context, process string, ready func(), heard func(text string)) error
}

// Ringer is implemented by a Placer that can wake its clients, and tell them no text. It
// is no Hearer. Its Swap gets wakes only for those whose turn it is. If it has one wake and
// no Drop, and knows that this wake arrives, it need not look: it returns the places of
// seen, and if that waiter has left, its Node passes the name on.
type Ringer interface {
	// Ring calls rang with the rows that may have changed when a wake for a process
	// comes, until ctx ends or the connection breaks. watching returns the names to
	// look at, and the versions that the Node knows of their rows, or "": a row that
	// has another one may be reported without a wake. rang reports whether it was
	// waited for. All the rest is as with Hear. A wake may get lost, seldom.
	Ring(ctx context.Context, process string, ready func(), watching func() []Row, rang func(Row) bool) error
}

// Place is a place in the queue of a name: a row of its own, which only its owner
// writes.
type Place struct {
	// Name is that of the lock. Waiter is who waits: letters, digits, - and _, up to
	// 400. There is one place of a waiter for a name.
	Name, Waiter string
	// Process is whose it is: letters and digits, up to 32. The place lives with it. A
	// process is one Node: a program that has several is several processes, whose names
	// have the same beginning (ProgramSize).
	Process string
	// Ticket is when the waiter came. Places are ordered by it, then by Waiter. A
	// store that has an order of its own may take that: a revision, a sequence.
	Ticket int64
}

const (
	// FirstPlaces is how many places a Snapshot has.
	FirstPlaces = 3
	// ProgramSize is how much of Place.Process is the same for all nodes of a program.
	ProgramSize = 16
	// PlaceLease is for how long a process lives that shows no life.
	PlaceLease = 10 * time.Second
)

// Placer is implemented by a store that keeps the queue of a name in places. Then a
// crowd does not write the row: who waits puts a place, and only those that may act
// write the row. Without it the queue is in the row.
//
// No lock depends on a place: if all of them were lost, locks would be slow and unfair.
// But wakes depend on one rule. A put reads the row after the place is committed, and a
// Swap reads the places after the row is committed, each in a snapshot of its own, or
// both in one step. So of a waiter that comes and a holder that leaves, one sees the
// other. Otherwise the waiter sleeps, and the lock is free.
type Placer interface {
	// Put stores a place, unless it is there, and returns what Read does after that,
	// with the places and the rank. again says that it was stored before. Otherwise it
	// may leave out all places, and the row's timers with them.
	Put(ctx context.Context, p Place, again bool) (Snapshot, error)
	// Drop removes a place, if it is there as it was put, and returns what Read does
	// after that. It may leave out the places unless Snapshot.Passes.
	Drop(ctx context.Context, p Place) (Snapshot, error)
	// Evict removes the places that a process has for a name. If both are empty, it
	// removes those of all processes that do not live.
	Evict(ctx context.Context, name, process string) error
	// Live extends the life of a process to PlaceLease from now. It reports whether the
	// process has lived since the last call: otherwise its places may be gone.
	Live(ctx context.Context, process string) (bool, error)
	// Places returns the places of a name, in order, of processes that live; of all
	// names if it is empty.
	Places(ctx context.Context, name string) ([]Place, error)
}

// Timers is implemented by a store without a clock that can count all the same. Then
// callers that come and go, none of which stays for as long as a lock lasts, get the
// lock of a holder that has crashed: one that is refused leaves a timer.
//
// A timer belongs to a row, which refers to it. When the row refers to a timer that
// does not run, a time in the row is over. So a timer is started before the row refers
// to it, nobody renews it, and it is removed after the row has ceased to refer to it.
// A timer that runs for too long is safe, one that ends early is not.
type Timers interface {
	// StartTimer starts a timer of a row that there is, under an id of letters and
	// digits. It runs for d at least, from some moment after the call began. It returns false if the
	// store cannot count for so long. After an error it may run or not.
	StartTimer(ctx context.Context, name, id string, d time.Duration) (bool, error)
	// DropTimers removes timers of a row, as far as they still run.
	DropTimers(ctx context.Context, name string, ids []string) error
}

// Stamper is implemented by a store that can put the time of a write into the row.
// A request that nobody contends for then needs no Read before its write.
type Stamper interface {
	// Stamps says that Swap obeys Write.Stamped: seen may be old. Nobody has read
	// seen.Row and seen.Marker together, and seen.Now is a guess of the present
	// time. So the same statement also compares the clock, as of the moment when it
	// began, before it waited for anything. That must be seen.Now, or later by up to
	// Span. By how many microseconds it is later is written before the state, in
	// 8 bytes, big-endian. The row is not the marker. If nothing was written, present
	// is not empty.
	Stamps()
}

// Span is by how much a stamped write may come later than its caller expects.
const Span = 200 * time.Millisecond

// Unmarked is the state of the marker's row on a server that is not marked, for a
// store that always has that row. Its Prepare inserts the row if it is missing,
// under a random version of its own (crypto/rand.Text).
func Unmarked() []byte { return new(nodestate.Marker).AppendTo(nil) }

// Rebooted returns what is left of the state of a row that was written before the
// machine booted; nil if it is nothing. The store raises its floor to the fence, as
// if it had removed the row.
func Rebooted(s Snapshot) (left []byte, fence node.Token) {
	e, err := s.Row.entry()
	if err != nil {
		return s.Row.State, 0 // it is damaged still
	}
	fence = e.Reboot()
	if e.Settle(s.Now); e.Dead() {
		return nil, fence
	}
	left, _ = s.encode(&e)
	return left, fence
}
