package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// The cluster parameters of every world. They are short, so that a story is.
const (
	TTL     = 6 * time.Second
	Window  = 2 * time.Second
	Name    = "orders/42"
	Servers = 5

	retention = time.Hour
	hold      = 4 * time.Second // of a client that works by itself
	rest      = 2 * time.Second // between two of its jobs
)

// base is when every world begins, by a right clock.
var base = time.UnixMicro(1_000_000_000_000_000)

// start is a client's monotonic clock then.
const start protocol.Instant = time.Hour

// Options say what is in a world.
type Options struct {
	Clients int
	// GuardOff has servers that restarted empty grant at once.
	GuardOff bool
	// Unchecked makes the resource take every write, whatever its token.
	Unchecked bool
	// Busy makes every client ask for the lock again and again.
	Busy bool
	Seed uint64
}

// World is everything at one moment.
type World struct {
	Clients  []*Client
	Servers  []*Server
	Resource *Resource

	now    time.Duration
	events []event // in order
	rand   *rand.Rand
	guard  node.Guard

	flights []*flight
	hits    []Hit
	lines   []Line
	sent    int // requests of clients so far

	top    node.Token // of all leases so far
	two    bool       // two leases are valid now
	twice  int        // how often that began
	broken []string   // promises that were broken although every assumption held
	beyond []string   // assumptions that do not hold any more
}

// Line is something that happened, in words.
type Line struct {
	At   time.Duration
	Kind string // "good", "bad", "fault" or ""
	Text string
}

var names = []string{"Ann", "Ben", "Cleo", "Dan", "Eve", "Finn"}

// New returns a world in which nothing has happened yet.
func New(o Options) *World {
	w := &World{rand: rand.New(rand.NewPCG(o.Seed, 1)), Resource: &Resource{Checks: !o.Unchecked}}
	w.guard = node.Guard{
		Membership: "00000000000000aa", Generation: 1, MaxTTL: TTL, Window: Window,
		Quarantine: protocol.Quarantine(TTL, Window, 0), Off: o.GuardOff,
	}
	for i := range Servers {
		w.Servers = append(w.Servers, newServer(w, i))
	}
	for i := range o.Clients {
		w.Clients = append(w.Clients, &Client{Name: names[i], w: w, number: i, every: time.Second})
	}
	if o.Busy {
		for i, c := range w.Clients {
			c.busy, c.hold = true, hold
			w.after(time.Duration(1+i)*300*time.Millisecond, func() { c.act(c.Ask) })
		}
	}
	return w
}

// clock is the right time.
func (w *World) clock() time.Time { return base.Add(w.now) }

// event is something that will happen.
type event struct {
	at time.Duration
	do func()
}

// at plans an event. Those of one moment happen in the order in which they were planned.
func (w *World) at(t time.Duration, do func()) {
	t = max(t, w.now)
	i := len(w.events)
	for i > 0 && w.events[i-1].at > t {
		i--
	}
	w.events = slices.Insert(w.events, i, event{t, do})
}

func (w *World) after(d time.Duration, do func()) { w.at(w.now+d, do) }

// Step executes the next event, if there is one.
func (w *World) Step() {
	if len(w.events) > 0 {
		e := w.events[0]
		w.events, w.now = w.events[1:], e.at
		e.do()
	}
	w.check()
}

// RunUntil has events happen until done reports true, for no longer than d. It
// returns what done reports.
func (w *World) RunUntil(d time.Duration, done func() bool) bool {
	end := w.now + d
	for !done() {
		if len(w.events) == 0 || w.events[0].at > end {
			w.now = end
			w.check()
			return done()
		}
		w.Step()
	}
	return true
}

// trip is how long a message is in flight.
func (w *World) trip() time.Duration {
	return 25*time.Millisecond + time.Duration(w.rand.Int64N(int64(30*time.Millisecond)))
}

func (w *World) say(kind, format string, args ...any) {
	w.lines = append(w.lines, Line{w.now, kind, fmt.Sprintf(format, args...)})
}

func (w *World) leave(assumption string) {
	if !slices.Contains(w.beyond, assumption) {
		w.beyond = append(w.beyond, assumption)
	}
}

// breaks records a broken promise, if every assumption holds.
func (w *World) breaks(format string, args ...any) {
	if len(w.beyond) == 0 {
		w.broken = append(w.broken, fmt.Sprintf("%v: ", w.now)+fmt.Sprintf(format, args...))
	}
}

// Holders are the clients with a valid lease.
func (w *World) Holders() (all []*Client) {
	for _, c := range w.Clients {
		if c.Holds() {
			all = append(all, c)
		}
	}
	return all
}

// check looks for two valid leases.
func (w *World) check() {
	all := w.Holders()
	if two := len(all) > 1; two != w.two {
		if w.two = two; two {
			w.twice++
			w.say("bad", "Two holders at once: %s and %s", all[0].Name, all[1].Name)
			w.breaks("two holders: %s and %s", all[0].Name, all[1].Name)
		}
	}
}

// won records a new lease.
func (w *World) won(c *Client, t node.Token) {
	if t <= w.top {
		w.breaks("%s got token %s, and %s was acquired before", c.Name, Text(t), Text(w.top))
	}
	w.top = max(w.top, t)
}

// Text is a token as it is shown: from a second before the world began.
func Text(t node.Token) string {
	n := int64(t) - base.Add(-time.Second).UnixMicro()
	if n < 0 {
		return fmt.Sprint(n)
	}
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
