package casnode

import (
	crand "crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// places are what this process, which is one Node, has in the queues.
type places struct {
	store   Placer // nil if the queues are in the rows
	process string
	uptime  func() time.Duration

	renewing chan struct{} // held while the process shows that it lives

	mu     sync.Mutex // guards all fields below
	own    map[waiter]*ownPlace
	pruned time.Duration
	// free has the rows that were free, and not kept for anybody, by name.
	free map[string]seenRow
	// watched are the rows of names that this process waits for, or did a moment ago.
	watched map[string]seenRow
	// lived is when the process showed last that it lives; 0 for never.
	lived time.Duration

	// writes counts the acquisitions that are being written, by their waiters.
	writes [64]atomic.Int32
}

// ownPlace is what is known of a waiter of this process.
type ownPlace struct {
	Place
	stored  bool // its row is there
	leaving bool // its row is being removed
	gone    bool // its row was removed
	ended   bool // a late request of it has no place
	rank    int  // when it was looked at last
	unsure  bool // an acquisition of it may still be written
	asked   time.Duration
}

// seenRow is a version of a row, and since when it has been seen. In watched it is the
// last one, and when somebody waited for it.
type seenRow struct {
	version string
	since   time.Duration
}

const (
	// watchedFor is for how long a row is watched after somebody has waited for it.
	watchedFor = 10 * time.Second
	// mostWatched is how many are. Who waits for others polls.
	mostWatched = 64
)

// watching returns the rows that are watched, with their versions as far as they are
// known.
func (q *places) watching() (rows []Row) {
	now := q.uptime()
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.watched, func(_ string, w seenRow) bool { return now-w.since > watchedFor })
	for name, w := range q.watched {
		rows = append(rows, Row{Name: name, Version: w.version})
	}
	return rows
}

// saw notes the present version of a row, if it is watched.
func (q *places) saw(row Row) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w, ok := q.watched[row.Name]; ok {
		w.version = row.Version
		q.watched[row.Name] = w
	}
}

// mostFree is how many names are remembered that were free.
const mostFree = 1024

// program is what the processes of all nodes in this program begin with.
var program = crand.Text()[:ProgramSize]

func newPlaces(store Store, uptime func() time.Duration) places {
	p, _ := store.(Placer)
	return places{store: p, process: program + crand.Text()[:10], uptime: uptime, renewing: make(chan struct{}, 1), own: map[waiter]*ownPlace{}, free: map[string]seenRow{}, watched: map[string]seenRow{}}
}

// order is an encoding that keeps the order of what it encodes.
var order = base32.HexEncoding.WithPadding(base32.NoPadding)

// longestWaiter is the longest Place.Waiter, and longestRest what it says beside the value.
const longestWaiter, longestRest = 400, 30

// placeOf returns the place that a request would have, without its process.
func placeOf(req node.Request) Place {
	var until int64
	if !req.Until.IsZero() {
		until = req.Until.UnixMicro()
	}
	return Place{Name: req.Name, Waiter: nameOf(req.Share, until, req.Value), Ticket: req.Ticket}
}

// nameOf returns what a place says of its waiter.
func nameOf(s node.Share, until int64, value string) string {
	return fmt.Sprintf("%d-%d-%d-%s", s.Mode, s.Slots, until, order.EncodeToString([]byte(value)))
}

// waiter returns what the rules see of a place.
func (p Place) waiter() (w node.Waiter, err error) {
	parts := strings.SplitN(p.Waiter, "-", 4)
	if len(parts) != 4 {
		return w, errors.New("a place is damaged")
	}
	mode, err1 := strconv.ParseUint(parts[0], 10, 8)
	slots, err2 := strconv.ParseUint(parts[1], 10, 8)
	until, err3 := strconv.ParseInt(parts[2], 10, 64)
	value, err4 := order.DecodeString(parts[3])
	w = node.Waiter{Value: string(value), Ticket: p.Ticket, Share: node.Share{Mode: node.Mode(mode), Slots: uint8(slots)}, Process: p.Process, Until: until}
	return w, errors.Join(err1, err2, err3, err4, w.Share.Check())
}

// Over reports whether the waiter's time is over, so that it leaves just now. A store may
// leave such a place out if there are others.
func (p Place) Over(now time.Time) bool {
	w, err := p.waiter()
	return err == nil && nodestate.Over(now, w)
}

// waiters returns those places that are not damaged.
func waiters(all []Place) (ws []node.Waiter) {
	for _, p := range all {
		if w, err := p.waiter(); err == nil {
			ws = append(ws, w)
		}
	}
	return ws
}

// serves reports whether a request may have a place.
func (q *places) serves(req node.Request) bool {
	return q.store != nil && req.Op == node.OpAcquire && req.Wait && order.EncodedLen(len(req.Value)) <= longestWaiter-longestRest
}

// joins reports whether a request that is refused has a place. A late one has none, and
// one whose waiter has left meanwhile.
func (q *places) joins(req node.Request) bool {
	if !q.serves(req) {
		return false
	}
	p, _ := q.find(waiter{req.Name, req.Value})
	return !p.gone
}

// comes notes that a request begins. Its waiter may be back.
func (q *places) comes(req node.Request) {
	if q.serves(req) {
		p := q.meet(waiter{req.Name, req.Value})
		q.mu.Lock()
		defer q.mu.Unlock()
		p.gone = p.ended
	}
}

// find returns what is known of a waiter; the zero value for nothing.
func (q *places) find(w waiter) (p ownPlace, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if here := q.own[w]; here != nil {
		return *here, true
	}
	return p, false
}

// expect notes that a request will have a place. It returns it, and whether it was
// stored before.
func (q *places) expect(req node.Request) (place Place, again bool) {
	p := q.meet(waiter{req.Name, req.Value})
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.Name == "" {
		p.Place, p.gone = placeOf(req), false
		p.Process = q.process
	}
	if w, known := q.watched[req.Name]; known || len(q.watched) < mostWatched {
		w.since = q.uptime()
		q.watched[req.Name] = w
	}
	return p.Place, p.stored
}

// has reports whether a waiter of this process has a place, and does not leave.
func (q *places) has(w waiter) bool {
	p, _ := q.find(w)
	return p.Name != "" && !p.leaving
}

// placed reports whether it has one, and may leave.
func (q *places) placed(w waiter) bool {
	p, _ := q.find(w)
	return p.Name != ""
}

// leaving notes that a waiter leaves: a wake for it is passed on from now on.
func (q *places) leaving(w waiter) (p Place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if here := q.own[w]; here != nil {
		here.leaving, p = true, here.Place
	}
	return p
}

// leftFor is how long a waiter is remembered that has left. A release may come twice.
const leftFor = 10 * time.Second

// hasLeft notes that a waiter has left, for good if it has ended. It is remembered.
func (q *places) hasLeft(w waiter, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.own[w]; p != nil {
		*p = ownPlace{gone: true, ended: p.ended || ended, rank: p.rank, unsure: p.unsure, asked: p.asked}
	}
}

// hasLock forgets a waiter that has the lock.
func (q *places) hasLock(w waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.own[w]; p != nil && !p.unsure {
		delete(q.own, w)
	}
}

// meet notes that this process is asked to acquire a name.
func (q *places) meet(w waiter) *ownPlace {
	now := q.uptime()
	q.mu.Lock()
	defer q.mu.Unlock()
	if now-q.pruned > leftFor {
		q.pruned = now
		maps.DeleteFunc(q.own, func(_ waiter, p *ownPlace) bool {
			return now-p.asked > remembered || p.gone && now-p.asked > leftFor
		})
	}
	p := q.own[w]
	if p == nil {
		p = new(ownPlace)
		q.own[w] = p
	}
	p.asked = now
	return p
}

// doubt notes that an acquisition may still be written.
func (q *places) doubt(req node.Request) {
	p := q.meet(waiter{req.Name, req.Value})
	q.mu.Lock()
	defer q.mu.Unlock()
	p.unsure = true
}

var seed = maphash.MakeSeed()

// writing counts an acquisition that is being written.
func (q *places) writing(req node.Request) *atomic.Int32 {
	return &q.writes[maphash.String(seed, req.Value)%uint64(len(q.writes))]
}

// sure reports whether nothing that the waiter asked for can be written any more.
func (q *places) sure(req node.Request) bool {
	p, known := q.find(waiter{req.Name, req.Value})
	return known && !p.unsure && q.writing(req).Load() == 0
}

// freshly reports whether a row that is free for its first waiter was seen so for a
// moment at the most.
func (q *places) freshly(row Row) bool {
	now := q.uptime()
	q.mu.Lock()
	defer q.mu.Unlock()
	seen, known := q.free[row.Name]
	if !known || seen.version != row.Version {
		if len(q.free) >= mostFree {
			clear(q.free)
		}
		seen = seenRow{row.Version, now}
		q.free[row.Name] = seen
	}
	return now-seen.since < nodestate.FreshFor
}
