package redlatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/node"
)

// attempt is one caller's asking for one lock, over as many rounds as it
// takes.
type attempt struct {
	*claim
	asked LockOptions // as the caller gave them
	opts  LockOptions
	floor Token // what the nodes' fences ask for, so far
	fence Token // the highest that a node told of that may be near the others'
	above Token // of the last request that was to be carried out once
	bad   error // what the caller asked for is beyond the nodes' bounds

	// left is the nodes that we leave to holder, who has a quorum without them.
	left   nodeSet
	holder string
}

func (c *Client) newAttempt(name string, opts LockOptions) (*attempt, error) {
	key, err := c.key(name)
	if err != nil {
		return nil, err
	}
	a := &attempt{asked: opts, claim: &claim{c: c, name: name, req: node.Request{
		Op: node.OpAcquire, Name: key, Value: c.newValue(),
	}}}
	return a, a.configure()
}

// configure sets what depends on the bounds that the nodes are marked with.
func (a *attempt) configure() error {
	opts, err := a.asked.withDefaults(a.c.opts, a.c.guard.bounds().MaxTTL)
	if err != nil {
		return err
	}
	a.opts, a.req.TTL, a.req.Barge = opts, opts.TTL, opts.Barge
	a.c.guard.apply(&a.req)
	return nil
}

// again takes back all that stands under the attempt's value, places in line
// included, and goes on under a new one: what is taken back may be overtaken by
// the next round. The ticket, and with it the place in line, stays the same.
func (a *attempt) again() {
	events := a.events
	a.drop()
	next := &claim{c: a.c, name: a.name, req: a.req}
	next.req.Value = a.c.newValue()
	a.claim, a.above = next, 0
	if events != nil {
		next.hear(events)
	}
}

// propose chooses the token of the next round.
func (a *attempt) propose() {
	if a.c.opts.NoToken {
		return
	}
	floor := max(a.floor, a.above+1)
	// The last holder's token was accepted by a quorum, so one above it will
	// be; unless it is that of a node whose clock ran away.
	if a.fence < a.plausible() {
		floor = max(floor, a.fence+1)
	}
	a.req.Token = a.c.proposer.propose(a.c.clockOffset(), floor)
}

// plausible is the highest token that nodes can be expected to accept.
func (a *attempt) plausible() Token { return a.c.plausible(a.req.Window) }

// maxProposals bounds how often a round is asked again with a higher token.
// Once is the rule when a clock is off; each further one needs another client
// to have come in between.
const maxProposals = 8

// try asks the nodes for the lock once, with as many proposals of a token as
// that takes. Only the last round counts: grants of an earlier proposal are
// refreshed by it or undone with it.
func (a *attempt) try(ctx context.Context) round {
	for proposal := 1; ; proposal++ {
		if proposal == 1 {
			a.floor = 0
			if a.above > a.plausible() {
				a.again() // our clock was wrong then, and no node would grant what is above that
			}
		}
		a.propose()
		marked, _ := a.c.marking.count()
		rd := a.ask(ctx, a.left)
		if rd.won() {
			return rd
		}
		if proposal == maxProposals || ctx.Err() != nil {
			return rd
		}
		if proposal == 1 && a.opts.Tries != 1 && rd.broken() {
			// That a connection was cut shows when it is next used. The second
			// try goes over new ones; for the same value it does no harm. One who
			// asks now and then might otherwise meet nothing but cut ones.
			continue
		}
		if a.c.guard.adopt(&rd, a.req.Guard) {
			// The nodes are marked with bounds that we left open.
			if a.bad = a.configure(); a.bad != nil {
				return rd
			}
			continue
		}
		if rd.needsMark() && a.c.marking.await(ctx, marked, markTime*a.c.opts.NodeTimeout) {
			continue // for what the nodes say now that they are marked
		}
		if !rd.wantsHigherToken() {
			return rd
		}
		var ok bool
		now := a.c.clock.Now().Add(a.c.clockOffset())
		if a.floor, ok = floorAfter(rd.results, quorumOf(rd.nodes), now, a.req.Window); !ok {
			return rd
		}
	}
}

// needsMark reports whether a node is to be marked.
func (rd *round) needsMark() bool {
	return slices.ContainsFunc(rd.results, func(r NodeResult) bool { return r.Err == nil && r.Reply.NeedsMark() })
}

// broken reports whether a quorum was missed for connections that broke.
func (rd *round) broken() bool {
	return !rd.available() && slices.ContainsFunc(rd.results, func(r NodeResult) bool {
		return r.Err != nil && !r.underway() && !errors.Is(r.Err, ErrNodeTimeout) && !errors.Is(r.Err, ErrUnsent)
	})
}

// wantsHigherToken reports whether a quorum might grant if only the token were
// another.
func (rd *round) wantsHigherToken() bool {
	firm, byToken := rd.failed, 0
	for _, r := range rd.results {
		switch {
		case r.Err != nil || r.Reply.Status == node.Granted:
		case r.Reply.Status == node.Stale, r.Reply.Status == node.Behind, r.Reply.Status == node.Ahead:
			byToken++
		default:
			firm++
		}
	}
	return byToken > 0 && rd.nodes-firm >= quorumOf(rd.nodes)
}

// settle turns a round into a lease, or says why it gives none.
func (a *attempt) settle(rd *round) (*Lease, error) {
	if rd.won() {
		// Counted from before the first send: a node's time to live began
		// after that, so ours ends first.
		if validity := validityOf(a.req.TTL, rd.elapsed); validity > 0 {
			a.c.guard.warn()
			return a.c.newLease(a.claim, a.opts, rd.start, rd.start+rd.elapsed+validity)
		}
		return nil, rd.quorumError(a.req)
	}
	if a.bad != nil {
		return nil, a.bad
	}
	if holders := rd.holders(); rd.available() && len(holders) > 0 {
		return nil, &HeldError{Name: a.name, Holders: holders}
	}
	if err := a.c.guard.mismatch(rd); err != nil && !rd.available() {
		return nil, err
	}
	for _, r := range rd.results {
		var bad *ConfigError
		if errors.As(r.Err, &bad) {
			return nil, r.Err
		}
	}
	return nil, rd.quorumError(a.req)
}

// holders returns those whom the nodes name as having the lock.
func (rd *round) holders() []Holder {
	type key struct{ kind, value string }
	byKey := map[key]int{}
	var holders []Holder
	for _, r := range rd.results {
		if r.Err != nil {
			continue
		}
		h, ok := HolderOf(r.Reply)
		if !ok {
			continue
		}
		k := key{string(h.Kind), r.Reply.Value}
		if i, known := byKey[k]; known {
			holders[i].Nodes++
			if h.Token > holders[i].Token {
				// A node may know of an earlier proposal alone.
				holders[i].Token, holders[i].Since, holders[i].Held = h.Token, h.Since, h.Held
			}
			if holders[i].Left != node.NoExpiry && (h.Left == node.NoExpiry || h.Left > holders[i].Left) {
				holders[i].Left = h.Left
			}
			continue
		}
		byKey[k] = len(holders)
		holders = append(holders, h)
	}
	slices.SortStableFunc(holders, func(a, b Holder) int { return b.Nodes - a.Nodes })
	return holders
}

// TryLock asks for the lock once, in one round, and does not wait. It returns
// a *HeldError if another has it, and a *QuorumError if too few nodes
// answered. The lease is not bound to ctx.
func (c *Client) TryLock(ctx context.Context, name string, opts LockOptions) (*Lease, error) {
	opts.Tries = 1
	return c.lock(ctx, name, opts)
}

// Lock waits until it has the lock, ctx ends, or the bounds of opts are
// reached. The lease is not bound to ctx. If ctx ends, the error is the
// context's, and says what Lock waited for; it is not ErrHeld or ErrNoQuorum.
//
// It waits for holders and for servers alike: for whatever can pass by itself.
// That is another holder, too few nodes that answer, nodes in quarantine, a
// change of the membership in progress (ErrChanging). It does not matter whether
// an outage is there when Lock is called or begins later. What cannot pass by
// itself, which is any other *ConfigError, is returned at once.
//
//   - With Wait or a deadline of ctx, Lock waits until that. With Tries, it asks
//     so many times at the most.
//   - With none of these, it waits for a holder without end, and for servers for
//     OutagePatience each time a quorum of them is gone, but for no fewer than
//     three rounds: nodes that miss the time limit of one round may be slow.
//
// At the end of the wait it returns what kept it last: a *HeldError or a
// *QuorumError; if ctx ended, the error of ctx, with the same in its text.
//
// Locks are not re-entrant: a second Lock of the same name waits for the first
// to be released, whoever asks.
func (c *Client) Lock(ctx context.Context, name string, opts LockOptions) (*Lease, error) {
	return c.lock(ctx, name, opts)
}

func (c *Client) lock(ctx context.Context, name string, opts LockOptions) (lease *Lease, err error) {
	if ctx.Err() != nil {
		return nil, endedError(ctx, nil)
	}
	a, err := c.newAttempt(name, opts)
	if err != nil && c.guard.learn(ctx, c, err) {
		a, err = c.newAttempt(name, opts)
	}
	if err != nil {
		return nil, err
	}
	if a.opts.Tries == 0 && a.opts.Wait == 0 && heldOn(ctx, c, a.req.Name) {
		return nil, fmt.Errorf("%w: %q", ErrDeadlock, name)
	}
	// Close waits for us, so that nothing is granted that nobody undoes.
	if !c.background.start() {
		return nil, ErrClosed
	}
	defer c.background.end()
	w := newWaiter(ctx, a)
	if o := c.opts.Observer; o != nil {
		ctx = o.LockStart(ctx, LockStart{Name: name, TTL: a.req.TTL, Nodes: len(c.members)})
		defer func() {
			end := LockEnd{Name: name, Rounds: w.rounds, Waited: c.clock.Uptime() - w.began, Err: err}
			if lease != nil {
				end.Token = lease.Token()
			}
			o.LockEnd(ctx, end)
		}()
	}
	if err := c.guard.start(ctx, c); err != nil {
		return nil, err
	}
	if a.opts.Tries == 0 {
		var ended error
		if w.line, ended = c.lines.enter(ctx, a.req.Name, w, c); ended != nil {
			return nil, ended
		}
		defer func() { c.lines.leave(a.req.Name, w.line) }()
	}
	return w.lock(ctx)
}

// endedError is what a caller gets whose context ended: the context's own
// error, its cause, and what had kept us until then, in words alone. It is not
// ErrHeld or ErrNoQuorum: who takes those for no failure must not take the end
// of its context for one of them.
func endedError(ctx context.Context, failure error) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != err {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if failure != nil {
		err = fmt.Errorf("%w while waiting: %v", err, failure)
	}
	return err
}
