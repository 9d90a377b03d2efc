package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Climate says which faults a world has.
type Climate string

// The climates. In all but those whose name begins with beyond, the
// assumptions of the guarantees hold, and so must every promise.
const (
	// Calm: nothing goes wrong, so the lock must be handed over at once.
	Calm Climate = "calm"
	// Within: all faults that the promises allow for, at the same time.
	Within Climate = "within"
	// BeyondRates: clocks run at rates that differ by more than the margin.
	BeyondRates Climate = "beyond: rates"
	// BeyondSteps: clocks of nodes are set forward.
	BeyondSteps Climate = "beyond: steps"
	// BeyondMemory: nodes forget, and nothing shows it.
	BeyondMemory Climate = "beyond: memory"
)

// Flavour says what a history within the assumptions has most of.
type Flavour string

// The flavours.
const (
	// Plain: a little of everything.
	Plain Flavour = ""
	// Crowd: all callers want the lock at the same time and briefly, and
	// messages have faults. Votes are split, and grants are yielded to each
	// other.
	Crowd Flavour = "crowd"
	// Keeper: locks are held and extended while nodes fail and return; what the
	// nodes miss is repaired.
	Keeper Flavour = "keeper"
)

// Plan is all that is decided about a history before it begins. The fate of a
// single message follows from the seed and from the message.
type Plan struct {
	Seed    uint64
	Climate Climate
	Flavour Flavour

	Nodes   int
	Clients int
	Callers int // of each client
	Names   int
	Guard   bool
	Obeys   bool // every driver obeys its context
	TTL     time.Duration
	MaxTTL  time.Duration
	Window  time.Duration
	Road    time.Duration // how long a message is in flight, about
	Storm   int           // how often messages have faults: never, sometimes, often
	// InOrder says that nodes execute what a client sends in order, and that
	// their links say so.
	InOrder bool
	// Behind says that one node's clock is behind by just above the window: the
	// token of a lease may be ahead of it when it is released, and in the window
	// soon after.
	Behind bool

	// Observed is how many of the nodes, the first ones, have no clock. Placed says
	// that they keep the queues in places.
	Observed int
	Placed   bool

	// Kinds say what is asked of each name.
	Kinds []Kind

	NodeClocks   []Clock
	ClientClocks []Clock

	// Mend is when everything that is broken is repaired, and nothing breaks
	// any longer.
	Mend   time.Duration
	Calls  []Call
	Faults []Fault
}

// Clock is how a clock runs: off by Offset at first, and gaining PPM
// millionths.
type Clock struct {
	Offset time.Duration
	PPM    int64
}

// Kind is what is asked of a name: of ten calls, so many are readers, so many
// want one of Slots slots, and the rest are writers.
type Kind struct {
	Readers int
	Slotted int
	Slots   uint8
}

// Call is one caller's use of a lock.
type Call struct {
	Client int
	Caller int // of the client's; each makes its calls one after the other
	Name   int
	Share  node.Share // what it asks for
	// Downgrade makes a writer a reader in the middle of its lease.
	Downgrade bool
	Gap       time.Duration // before it
	Try       bool          // TryLock
	Wait      time.Duration
	Cancel    time.Duration // when the caller gives up; 0 for never
	Hold      time.Duration
	Extend    int           // how often, at even distances
	Stay      time.Duration // after the last extension
	Alone     bool          // without keep-alive
	Drop      bool          // the lock is not released: its holder forgets it
}

// NewPlan makes the plan of a seed.
func NewPlan(seed uint64) *Plan {
	s := &stream{dice: dice(mix(seed))}
	p := &Plan{Seed: seed, Climate: Within, Mend: 4 * time.Second}
	switch s.intn(20) {
	case 0, 1:
		p.Climate = Calm
	case 2:
		p.Climate = BeyondRates
	case 3:
		p.Climate = BeyondSteps
	case 4:
		p.Climate = BeyondMemory
	}
	p.Nodes = []int{1, 1, 2, 3, 3, 3, 3, 3, 4, 5}[s.intn(10)]
	p.Clients = []int{2, 2, 3, 3, 4}[s.intn(5)]
	p.Callers = 1 + s.intn(3)/2
	p.Names = 1 + s.intn(4)/3
	p.Guard = s.intn(4) > 0
	p.Obeys = s.one(2)
	p.Road = s.between(200*time.Microsecond, 4*time.Millisecond)
	p.Storm = s.intn(3)
	if p.Climate == Within {
		p.Flavour = []Flavour{Plain, Plain, Plain, Crowd, Keeper}[s.intn(5)]
	}
	if p.Flavour != Plain {
		p.Nodes, p.Storm, p.Names = []int{3, 3, 3, 3, 5}[s.intn(5)], 2+s.intn(2), 1
	}
	p.bounds(s)
	if p.Flavour == Keeper && p.TTL <= time.Second {
		// Rounds that are long compared to the margin for drift.
		p.TTL, p.Road = s.between(150*time.Millisecond, 400*time.Millisecond), s.between(4*time.Millisecond, 16*time.Millisecond)
	}
	p.clocks(s)
	p.calls(s)
	if p.Climate == Calm {
		p.Storm = 0
	} else {
		p.faults(s)
	}
	p.kinds(&stream{dice: dice(mix(seed ^ 0x6b696e64))})
	p.order(&stream{dice: dice(mix(seed ^ 0x6f726472))})
	return p
}

// order chooses whether links keep the order, and whether a clock is behind. It has
// a stream of its own, so that all other histories are what they were. Where a clock
// is behind nothing else breaks, and orphaned keys live until the end: a request
// that is executed after its failure may leave one there, as is documented.
func (p *Plan) order(s *stream) {
	p.InOrder = s.one(4)
	if p.Climate != Within || p.Nodes < 3 || p.Nodes == 4 || p.TTL <= time.Second || s.one(2) {
		return
	}
	p.Behind, p.InOrder, p.Storm, p.Faults, p.Mend = true, s.one(2), 2, nil, 1500*time.Millisecond
	i := s.intn(p.Nodes)
	others := slices.Delete(slices.Clone(p.NodeClocks), i, i+1)
	slices.SortFunc(others, func(a, b Clock) int { return cmp.Compare(a.Offset, b.Offset) })
	c := others[(p.Nodes-3)/2] // the median of all
	c.Offset -= p.Window + s.between(0, 10*time.Millisecond)
	p.NodeClocks[i] = c
}

// kinds chooses what each name is used for. It has a stream of its own: the
// histories of names without readers and slots are what they were before there
// were any.
func (p *Plan) kinds(s *stream) {
	for range p.Names {
		var k Kind
		switch s.intn(10) {
		case 0, 1, 2, 3: // writers alone
		case 4, 5, 6:
			k.Readers = 3 + s.intn(6)
		default:
			k.Slots, k.Slotted = uint8(2+s.intn(2)), 10
			if s.one(3) {
				k.Slotted = 7
				k.Readers = s.intn(3)
			}
		}
		p.Kinds = append(p.Kinds, k)
	}
	for i := range p.Calls {
		p.Calls[i] = p.asKind(s, p.Calls[i])
	}
}

// asKind makes a call one of those that its name is used for.
func (p *Plan) asKind(s *stream, c Call) Call {
	if c.Name >= len(p.Kinds) {
		return c
	}
	k := p.Kinds[c.Name]
	switch n := s.intn(10); {
	case n < k.Readers:
		c.Share.Mode = node.Shared
	case n < k.Readers+k.Slotted:
		c.Share = node.Share{Mode: node.Slotted, Slots: k.Slots}
	default:
		c.Downgrade = k.Readers > 0 && s.one(2)
	}
	return c
}

// bounds chooses times to live: short, so that locks expire in the middle of
// everything, or so long that everything left behind is seen.
func (p *Plan) bounds(s *stream) {
	p.MaxTTL, p.Window = 6500*time.Millisecond, 2*time.Second
	p.TTL = p.MaxTTL
	switch n := s.intn(10); {
	case p.Climate == Calm:
	case n == 0:
		// Gone long before its token leaves the window.
		p.TTL = s.between(100*time.Millisecond, 400*time.Millisecond)
	case n > 3:
		p.MaxTTL, p.Window = time.Second, 300*time.Millisecond
		if p.TTL = s.between(150*time.Millisecond, time.Second); s.one(2) {
			p.TTL = p.MaxTTL // the longest that a quarantine is made for
		}
	}
}

// apart is how far the clocks of nodes may be off: half the window.
func (p *Plan) apart() time.Duration { return p.Window / 2 }

const (
	// steadyPPM is within the margin of 1 %: 4 per mille at each end.
	steadyPPM = 4000
	// wildPPM is beyond it.
	wildPPM = 60_000
)

func (p *Plan) clocks(s *stream) {
	clock := func(apart time.Duration) Clock {
		c := Clock{Offset: s.between(-apart, apart), PPM: int64(s.intn(2*steadyPPM+1)) - steadyPPM}
		switch {
		case p.Climate == Calm:
			return Clock{}
		case p.Climate == BeyondRates:
			c.PPM = int64(s.intn(2*wildPPM)) - wildPPM
		case s.one(3):
			c.PPM = []int64{-steadyPPM, steadyPPM}[s.intn(2)]
		}
		return c
	}
	for range p.Nodes {
		p.NodeClocks = append(p.NodeClocks, clock(p.apart()*2/5))
	}
	for range p.Clients {
		// About right, or so wrong that no node grants its proposals. An error
		// in between can leave an orphaned key, as is documented.
		c := clock(p.apart())
		if s.one(4) && p.Climate != Calm {
			c.Offset += []time.Duration{-1, 1}[s.intn(2)] * s.between(time.Minute, 10*time.Hour)
		}
		p.ClientClocks = append(p.ClientClocks, c)
	}
}

func (p *Plan) calls(s *stream) {
	for i := range 15 {
		c := Call{
			Client: i % p.Clients, Caller: s.intn(p.Callers), Name: s.intn(p.Names),
			Gap: s.between(0, 250*time.Millisecond), Hold: s.between(0, 20*time.Millisecond),
		}
		switch {
		case p.Climate == Calm:
			if s.one(6) {
				c.Cancel = s.between(0, 100*time.Millisecond)
			}
		case p.Flavour == Crowd:
			c.Gap, c.Hold = s.between(0, 5*time.Millisecond), s.between(0, 3*time.Millisecond)
			if s.one(6) {
				c.Cancel = s.between(0, 300*time.Millisecond)
			}
		case p.Flavour == Keeper:
			c.Hold, c.Extend = s.between(0, 150*time.Millisecond), s.intn(6)
			if p.TTL <= time.Second && s.one(2) {
				c.Alone, c.Stay = true, s.between(p.TTL/2, 2*p.TTL)
			}
		default:
			p.vary(s, &c)
		}
		p.Calls = append(p.Calls, c)
	}
}

// vary makes a call one of many kinds.
func (p *Plan) vary(s *stream, c *Call) {
	switch s.intn(12) {
	case 0, 1:
		c.Try = true
	case 2:
		c.Wait = time.Duration(1+s.intn(4)) * 100 * time.Millisecond
	case 3:
		c.Wait = s.between(time.Millisecond, time.Second)
	}
	if s.one(5) {
		c.Cancel = s.between(0, 600*time.Millisecond)
	}
	if s.one(5) {
		c.Extend = 1 + s.intn(3)
	}
	switch s.intn(8) {
	case 0, 1:
		// Until it is lost, or nearly.
		c.Alone, c.Hold = true, s.between(min(p.TTL, time.Second)/2, min(p.TTL, time.Second)*3/2)
		if s.one(2) {
			c.Extend = 0
		}
	case 2:
		c.Hold = s.between(0, min(p.TTL, 500*time.Millisecond)*2)
	case 3:
		c.Drop = p.TTL <= time.Second
		c.Alone = c.Drop
	}
}
