package etcd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// store is the keys with a prefix:
//
//	v/NAME  s/NAME      the version and the state of a row; of the marker v and s
//	id                  the identity: a random text
//	floor               the highest fence of all rows that were removed
//	t/NAME/ID           a timer, with a lease that nobody renews; NAME in base64
//	q/NAME/PROCESS/SLOT a place, with the lease of its process: see places.go
//	w/PROCESS           the last wakes for a process, with its lease
//
// clusterKey has no prefix.
// The versions are random: etcd's own revisions go back when a backup is restored. A
// version has a key of its own, so that a comparison need not send the state.
type store struct {
	prefix, name string
	config       *clientv3.Config // nil if the client is the program's
	lines        *lines           // nil then

	mu      sync.Mutex // guards all fields below
	client  *clientv3.Client
	dialled chan struct{} // closed when the client is made, or was not; nil if nobody makes it
	failed  error         // why it was not
	closed  bool

	places
}

func (s *store) String() string { return s.name }

func (s *store) key(kind, name string) string {
	if name == casnode.MarkerName {
		return s.prefix + kind
	}
	return s.prefix + kind + "/" + name
}

func (s *store) version(name string) string  { return s.key("v", name) }
func (s *store) state(name string) string    { return s.key("s", name) }
func (s *store) identity() string            { return s.prefix + "id" }
func (s *store) floor() string               { return s.prefix + "floor" }
func (s *store) inbox(process string) string { return s.prefix + "w/" + process }

// timers is what the keys of a row's timers begin with, and queue those of its places.
func (s *store) timers(name string) string { return s.prefix + "t/" + encode(name) + "/" }
func (s *store) queue(name string) string  { return s.prefix + "q/" + encode(name) + "/" }

func encode(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

func decode(text string) (string, error) {
	name, err := base64.RawURLEncoding.DecodeString(text)
	return string(name), err
}

// found returns what the i-th operation, a Get, has found.
func found(r *clientv3.TxnResponse, i int) []*mvccpb.KeyValue {
	return r.Responses[i].GetResponseRange().Kvs
}

// text returns the value of the only key.
func text(kvs []*mvccpb.KeyValue) string {
	if len(kvs) == 0 {
		return ""
	}
	return string(kvs[0].Value)
}

// is compares a key with a text; "" if there is no such key.
func is(key, value string) clientv3.Cmp {
	if value == "" {
		return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	}
	return clientv3.Compare(clientv3.Value(key), "=", value)
}

// Prepare creates identity, marker and floor. If one of them is missing, something was
// removed: then the identity is a new one.
func (s *store) Prepare(ctx context.Context) error {
	keys := []string{s.identity(), s.version(casnode.MarkerName), s.state(casnode.MarkerName), s.floor()}
	for range 10 {
		var gets []clientv3.Op
		for _, k := range keys {
			gets = append(gets, clientv3.OpGet(k))
		}
		r, err := s.txn(ctx, nil, gets...)
		if err != nil {
			return err
		}
		values := []string{rand.Text(), rand.Text(), string(casnode.Unmarked()), node.Token(0).String()}
		var same []clientv3.Cmp
		var puts []clientv3.Op
		missing := false
		for i, k := range keys {
			seen := text(found(r, i))
			same = append(same, is(k, seen))
			missing = missing || seen == ""
			if seen == "" || i == 0 {
				puts = append(puts, clientv3.OpPut(k, values[i]))
			}
		}
		if !missing {
			return nil
		}
		if r, err := s.txn(ctx, same, puts...); err != nil || r.Succeeded {
			return err
		}
	}
	return errors.New("others prepare the keys at the same time")
}

// Read reads all in one transaction, which is linearizable: every member asks the
// leader first.
func (s *store) Read(ctx context.Context, name string) (seen casnode.Snapshot, err error) {
	r, err := s.txn(ctx, nil, s.gets(name)...)
	if err != nil {
		return seen, err
	}
	return s.snapshot(name, r, 0)
}

// gets are the operations that read what a snapshot has.
func (s *store) gets(name string) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(s.version(name)), clientv3.OpGet(s.state(name)), s.timersOf(name),
		clientv3.OpGet(s.version(casnode.MarkerName)), clientv3.OpGet(s.state(casnode.MarkerName)), s.timersOf(casnode.MarkerName),
		clientv3.OpGet(s.identity()), clientv3.OpGet(s.floor()), s.firstOf(name),
	}
}

// snapshot returns what they have found. at is the first of them.
func (s *store) snapshot(name string, r *clientv3.TxnResponse, at int) (seen casnode.Snapshot, err error) {
	row := func(name string, i int) casnode.Row {
		row := casnode.Row{Name: name, Version: text(found(r, i))}
		if kvs := found(r, i+1); len(kvs) > 0 {
			row.State = kvs[0].Value
		}
		for _, kv := range found(r, i+2) {
			row.Timers = append(row.Timers, strings.TrimPrefix(string(kv.Key), s.timers(name)))
		}
		return row
	}
	seen.Row, seen.Marker, seen.Server = row(name, at), row(casnode.MarkerName, at+3), text(found(r, at+6))
	floor := text(found(r, at+7))
	if seen.Server == "" || seen.Marker.Version == "" || floor == "" {
		return seen, casnode.ErrUnprepared
	}
	if first := r.Responses[at+8].GetResponseRange(); len(first.Kvs) > 0 || first.Count == 0 { // else they were counted
		seen.Places = s.saw(seen.Row.Version, first.Kvs)
	}
	seen.KeepsFences = true
	seen.Floor, err = parseFloor(floor)
	return seen, err
}

func (s *store) timersOf(name string) clientv3.Op {
	return clientv3.OpGet(s.timers(name), clientv3.WithPrefix(), clientv3.WithKeysOnly())
}

// parseFloor reads a floor, which may be 0.
func parseFloor(text string) (floor node.Token, err error) {
	if text == node.Token(0).String() {
		return 0, nil
	}
	if floor, err = node.ParseToken(text); err != nil {
		return 0, fmt.Errorf("the key floor is damaged: %w", err)
	}
	return floor, nil
}

// Swap writes a row in one transaction, which also reads: the places after the write, if
// they are needed, or all that is there instead. Where nobody waits it is rarely refused, and
// then says nothing: the members would store and carry the operations each time.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (done bool, present casnode.Snapshot, err error) {
	row := w.Row
	same := []clientv3.Cmp{is(s.version(row.Name), seen.Row.Version), is(s.identity(), seen.Server)}
	if row.Name != casnode.MarkerName {
		same = append(same, is(s.version(casnode.MarkerName), seen.Marker.Version))
	}
	if seen.Row.Version == "" {
		same = append(same, is(s.floor(), seen.Floor.String()))
	}
	ops := []clientv3.Op{clientv3.OpPut(s.version(row.Name), row.Version), clientv3.OpPut(s.state(row.Name), string(row.State))}
	if w.Drop != nil {
		if key := s.taken(*w.Drop); key != "" {
			ops = append(ops, clientv3.OpDelete(key))
		}
	}
	first := s.queued(seen.Row.Version, w.Drop)
	ops = s.wakes(ops, w.Wakes, row.Version, first)
	look := w.Look && (!w.Near || len(first) == 0)
	if look && w.Drop == nil && len(w.Wakes) > 0 {
		next := w.Wakes[0].Waiter
		if i := slices.IndexFunc(first, func(kv *mvccpb.KeyValue) bool { return isOf(kv, next) }); i >= 0 {
			// The row is kept for a place that there is then: who leaves it later sees that.
			same, look = append(same, its(string(first[i].Key), next)...), false
		}
	}
	if look {
		ops = append(ops, s.firstOf(row.Name))
	}
	var otherwise []clientv3.Op
	if len(seen.Places) > 0 || w.Drop != nil {
		otherwise = s.gets(row.Name)
	}
	r, err := s.either(ctx, same, ops, otherwise)
	switch {
	case err != nil:
		return false, present, err
	case !r.Succeeded && otherwise != nil:
		present, err = s.snapshot(row.Name, r, 0)
		return false, present, err
	case !r.Succeeded:
		return false, present, nil
	}
	if w.Drop != nil {
		s.occupied(*w.Drop, "")
	}
	present = casnode.Snapshot{Row: row, Marker: seen.Marker, Server: seen.Server, KeepsFences: true, Floor: seen.Floor}
	if present.Row.Timers = seen.Row.Timers; row.Name == casnode.MarkerName {
		present.Marker = present.Row
	}
	if look {
		first = found(r, len(ops)-1)
	}
	if w.Look {
		present.Places = s.saw(row.Version, first)
	}
	return true, present, nil
}

// Scan reads versions and states in the order of their names, at one revision.
func (s *store) Scan(ctx context.Context, after string, limit int) ([]casnode.Row, error) {
	page := func(kind string) clientv3.Op {
		return clientv3.OpGet(s.prefix+kind+"/"+after+"\x00", clientv3.WithRange(s.prefix+kind+"0"), clientv3.WithLimit(int64(limit)))
	}
	r, err := s.txn(ctx, nil, page("v"), page("s"), clientv3.OpGet(s.identity()))
	if err != nil {
		return nil, err
	}
	if text(found(r, 2)) == "" {
		return nil, casnode.ErrUnprepared
	}
	versions, states := found(r, 0), found(r, 1)
	if len(versions) != len(states) {
		return nil, errors.New("there are versions without states: keys were removed")
	}
	rows := make([]casnode.Row, len(versions))
	for i, v := range versions {
		name := string(bytes.TrimPrefix(v.Key, []byte(s.prefix+"v/")))
		if string(states[i].Key) != s.state(name) {
			return nil, fmt.Errorf("the key %q has no state", v.Key)
		}
		rows[i] = casnode.Row{Name: name, Version: string(v.Value), State: states[i].Value}
	}
	return rows, nil
}

// mostRemoved is how many rows a transaction removes: etcd allows 128 operations.
const mostRemoved = 60

// Remove removes rows. Before that it raises the floor.
func (s *store) Remove(ctx context.Context, seen casnode.Snapshot, rows []casnode.Row) error {
	for {
		r, err := s.txn(ctx, nil, clientv3.OpGet(s.floor()))
		if err != nil {
			return err
		}
		before := text(found(r, 0))
		floor, err := parseFloor(before)
		if err != nil {
			return err
		}
		if floor >= seen.Floor {
			break
		}
		if r, err = s.txn(ctx, []clientv3.Cmp{is(s.floor(), before), is(s.identity(), seen.Server)}, clientv3.OpPut(s.floor(), seen.Floor.String())); err != nil {
			return err
		}
		if r.Succeeded {
			break
		}
		if now, err := s.txn(ctx, nil, clientv3.OpGet(s.identity())); err != nil || text(found(now, 0)) != seen.Server {
			return err
		}
	}
	for len(rows) > 0 {
		some := rows[:min(len(rows), mostRemoved)]
		rows = rows[len(some):]
		var ops []clientv3.Op
		for _, row := range some {
			ops = append(ops, clientv3.OpTxn([]clientv3.Cmp{is(s.version(row.Name), row.Version)},
				[]clientv3.Op{clientv3.OpDelete(s.version(row.Name)), clientv3.OpDelete(s.state(row.Name))}, nil))
		}
		if _, err := s.txn(ctx, []clientv3.Cmp{is(s.identity(), seen.Server)}, ops...); err != nil {
			return err
		}
	}
	return nil
}

// StartTimer starts a timer: a key with a lease that nobody renews. A leader that takes
// over counts it anew, so it may run for longer.
func (s *store) StartTimer(ctx context.Context, name, id string, d time.Duration) (bool, error) {
	client, err := s.connect(ctx)
	if err != nil {
		return false, err
	}
	seconds := int64(math.Ceil(d.Seconds())) + 1
	lease, err := client.Grant(ctx, seconds)
	if err != nil || lease.TTL < seconds {
		return false, explain(err)
	}
	_, err = client.Put(ctx, s.timers(name)+id, "", clientv3.WithLease(lease.ID))
	return err == nil, explain(err)
}

// DropTimers removes timers. Their leases end by themselves.
func (s *store) DropTimers(ctx context.Context, name string, ids []string) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := client.Delete(ctx, s.timers(name)+id); err != nil {
			return explain(err)
		}
	}
	return nil
}
