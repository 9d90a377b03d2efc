package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/store/casnode"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// This file has the places in the queues, and the inboxes of the processes. They are
// keys with a lease that their process renews, so they go with it. A lock has none: a
// leader that was stopped, and goes on, may acknowledge a renewal that does not count.
// Of a place nothing worse comes than that it is put again.
//
// The order is that of the revisions at which the keys were created. The places of a
// process for a name have numbers, its slots, and each slot has a key, which is used
// again and again. A key of its own for each place would leave tombstones: they are in
// front of all places until the database is compacted, and each read walks over them.

// places are what a store knows of its processes.
type places struct {
	living sync.Mutex // held while a process is granted a lease

	mu     sync.Mutex // guards all fields below
	leases map[string]lease
	slots  map[string][]string // the waiters in the slots of a process for a name; "" for none
	crowd  string              // a name that had more places than are read; "" for none
	// queues has the first places, by the version of the row with which they were seen.
	// Some may have gone; others come behind them.
	queues map[string][]*mvccpb.KeyValue
}

const (
	// mostSeen is how many rows are remembered. To forget one costs a reading.
	mostSeen = 1024
	// inSight is how many places are read. A wake has those that its sender knows.
	inSight = 8
)

// lease is that of a process. inbox says that the inbox has it.
type lease struct {
	id    clientv3.LeaseID
	inbox bool
}

// firstOf reads the first places of a name.
func (s *store) firstOf(name string) clientv3.Op {
	return clientv3.OpGet(s.queue(name), append(inOrder, clientv3.WithLimit(inSight))...)
}

var inOrder = slices.Clip([]clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)})

// parse returns the places in keys, but those that are damaged.
func (s *store) parse(kvs []*mvccpb.KeyValue) (all []casnode.Place) {
	for _, kv := range kvs {
		key := strings.Split(strings.TrimPrefix(string(kv.Key), s.prefix+"q/"), "/")
		waiter, text, _ := strings.Cut(string(kv.Value), " ")
		ticket, err := strconv.ParseInt(text, 10, 64)
		if name, err2 := decode(key[0]); len(key) == 3 && err == nil && err2 == nil {
			all = append(all, casnode.Place{Name: name, Waiter: waiter, Process: key[1], Ticket: ticket})
		}
	}
	return all
}

// saw returns the first of the places that were seen with a row, and remembers them.
func (s *store) saw(version string, kvs []*mvccpb.KeyValue) []casnode.Place {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	if len(s.queues) >= mostSeen {
		clear(s.queues)
	}
	if delete(s.queues, version); version != "" && len(kvs) > 0 {
		s.queues[version] = kvs
	}
	all := s.parse(kvs)
	return all[:min(len(all), casnode.FirstPlaces)]
}

// queued returns the places that were seen with a row, without one.
func (s *store) queued(version string, but *casnode.Place) []*mvccpb.KeyValue {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.queues[version]), func(kv *mvccpb.KeyValue) bool { return but != nil && isOf(kv, but.Waiter) })
}

// isOf reports whether a key is the place of a waiter.
func isOf(kv *mvccpb.KeyValue, waiter string) bool {
	return strings.HasPrefix(string(kv.Value), waiter+" ")
}

// counted notes how many places a name has, unless that is not known, and reports whether
// they are only counted: there were more than are read.
func (s *store) counted(name string, places int) bool {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	if places > inSight {
		s.crowd = name
	} else if places >= 0 && s.crowd == name {
		s.crowd = ""
	}
	return s.crowd == name
}

// of is what the keys of a process's places for a name begin with.
func (s *store) of(name, process string) string { return s.queue(name) + process + "/" }

// slot returns the key of a place, which has a slot from then on.
func (s *store) slot(p casnode.Place) string {
	of := s.of(p.Name, p.Process)
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	slots := s.slots[of]
	i := slices.Index(slots, p.Waiter)
	if i < 0 {
		if i = slices.Index(slots, ""); i < 0 {
			i, slots = len(slots), append(slots, "")
		}
		slots[i] = p.Waiter
		s.slots[of] = slots
	}
	return of + strconv.Itoa(i)
}

// taken returns the key of a place that has a slot, or "".
func (s *store) taken(p casnode.Place) string {
	of := s.of(p.Name, p.Process)
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	if i := slices.Index(s.slots[of], p.Waiter); i >= 0 {
		return of + strconv.Itoa(i)
	}
	return ""
}

// occupied notes that the slot of a place has another waiter: a request without an
// answer has left it. "" frees it.
func (s *store) occupied(p casnode.Place, waiter string) {
	of := s.of(p.Name, p.Process)
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	if i := slices.Index(s.slots[of], p.Waiter); i >= 0 {
		s.slots[of][i] = waiter
	}
	if !slices.ContainsFunc(s.slots[of], func(w string) bool { return w != "" }) {
		delete(s.slots, of)
	}
}

// Put stores a place, if its key is not there, and reads in the same transaction. One
// that was stored before is looked for first: that writes nothing.
func (s *store) Put(ctx context.Context, p casnode.Place, again bool) (seen casnode.Snapshot, err error) {
	for range 100 {
		key, value := s.slot(p), fmt.Sprint(p.Waiter, " ", p.Ticket)
		look := append([]clientv3.Op{clientv3.OpGet(key)}, s.gets(p.Name)...)
		var r *clientv3.TxnResponse
		put := !again
		if again {
			r, err = s.txn(ctx, nil, look...)
		} else {
			var l lease
			if l, err = s.lease(ctx, p.Process, 0); err != nil {
				return seen, err
			}
			ops := append([]clientv3.Op{clientv3.OpPut(key, value, clientv3.WithLease(l.id))}, look[1:]...)
			if s.counted(p.Name, -1) {
				ops[len(look)-1] = clientv3.OpGet(s.queue(p.Name), clientv3.WithPrefix(), clientv3.WithCountOnly())
			}
			if !l.inbox {
				ops = append(ops, s.opening(p.Process, l))
			}
			r, err = s.either(ctx, []clientv3.Cmp{is(key, "")}, ops, look)
			if same(err, rpctypes.ErrLeaseNotFound) {
				if _, err = s.lease(ctx, p.Process, l.id); err != nil {
					return seen, err
				}
				continue
			}
			if put = err == nil && r.Succeeded; put && !l.inbox {
				s.opened(p.Process, l)
			}
		}
		if err != nil {
			return seen, err
		}
		here := ""
		if !put {
			here = text(found(r, 0))
		}
		if put || strings.HasPrefix(here, p.Waiter+" ") {
			if seen, err = s.snapshot(p.Name, r, 1); err == nil {
				at := slices.IndexFunc(seen.Places, func(x casnode.Place) bool { return x.Waiter == p.Waiter })
				count := int(r.Responses[len(look)-1].GetResponseRange().Count)
				seen.Rank = cmp.Or(at+1, count)
				s.counted(p.Name, count)
			}
			return seen, err
		}
		if again = false; here != "" {
			waiter, _, _ := strings.Cut(here, " ")
			s.occupied(p, waiter)
		}
	}
	return seen, errors.New("others write the keys of places")
}

// its compares a place with its waiter. The digits of a ticket are below a colon.
func its(key, waiter string) []clientv3.Cmp {
	return []clientv3.Cmp{clientv3.Compare(clientv3.Value(key), ">", waiter+" "), clientv3.Compare(clientv3.Value(key), "<", waiter+" :")}
}

// Drop removes a place, and reads in the same transaction. One without a slot is looked
// for: an earlier process, or a request without an answer, has left it.
func (s *store) Drop(ctx context.Context, p casnode.Place) (seen casnode.Snapshot, err error) {
	key := s.taken(p)
	if key == "" {
		r, err := s.txn(ctx, nil, append(s.gets(p.Name), clientv3.OpGet(s.of(p.Name, p.Process), clientv3.WithPrefix()))...)
		if err != nil {
			return seen, err
		}
		for _, kv := range found(r, len(r.Responses)-1) {
			if isOf(kv, p.Waiter) {
				key = string(kv.Key)
			}
		}
		if key == "" {
			return s.snapshot(p.Name, r, 0)
		}
	}
	r, err := s.txn(ctx, nil, append([]clientv3.Op{clientv3.OpTxn(its(key, p.Waiter), []clientv3.Op{clientv3.OpDelete(key)}, nil)}, s.gets(p.Name)...)...)
	if err != nil {
		return seen, err
	}
	s.occupied(p, "")
	return s.snapshot(p.Name, r, 1)
}

// Evict removes the places of a process for a name. Those of processes that do not live
// go with their leases.
func (s *store) Evict(ctx context.Context, name, process string) error {
	if name == "" || process == "" {
		return nil
	}
	_, err := s.txn(ctx, nil, clientv3.OpDelete(s.of(name, process), clientv3.WithPrefix()))
	return err
}

// Live renews the lease of a process. If it is over, it grants a new one.
func (s *store) Live(ctx context.Context, process string) (bool, error) {
	l := s.known(process)
	if l.id != 0 {
		client, err := s.connect(ctx)
		if err != nil {
			return false, err
		}
		if _, err = client.KeepAliveOnce(ctx, l.id); err == nil || !same(err, rpctypes.ErrLeaseNotFound) {
			return err == nil, explain(err)
		}
	}
	_, err := s.lease(ctx, process, l.id)
	return false, err
}

func (s *store) known(process string) lease {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	return s.leases[process]
}

// lease returns the lease of a process, another one than that which is over.
func (s *store) lease(ctx context.Context, process string, over clientv3.LeaseID) (lease, error) {
	s.living.Lock()
	defer s.living.Unlock()
	if l := s.known(process); l.id != over {
		return l, nil
	}
	client, err := s.connect(ctx)
	if err != nil {
		return lease{}, err
	}
	r, err := client.Grant(ctx, int64(casnode.PlaceLease/time.Second))
	if err != nil {
		return lease{}, explain(err)
	}
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	s.leases[process] = lease{id: r.ID}
	return lease{id: r.ID}, nil
}

// opening puts the inbox of a process, and opened notes that it is there.
func (s *store) opening(process string, l lease) clientv3.Op {
	return clientv3.OpPut(s.inbox(process), "", clientv3.WithLease(l.id))
}

func (s *store) opened(process string, l lease) {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	if s.leases[process].id == l.id {
		s.leases[process] = lease{l.id, true}
	}
}

// Places reads the places of a name, or of all.
func (s *store) Places(ctx context.Context, name string) ([]casnode.Place, error) {
	from := s.prefix + "q/"
	if name != "" {
		from = s.queue(name)
	}
	r, err := s.txn(ctx, nil, clientv3.OpGet(from, inOrder...))
	if err != nil {
		return nil, err
	}
	return s.parse(found(r, 0)), nil
}

// wakes adds the operations that send wakes. A process without an inbox does not live.
// A transaction puts a key once, so the wakes of a process are one text. Each is a line:
// the row's version, the text, and other places that are known, with bars between them.
func (s *store) wakes(ops []clientv3.Op, wakes []casnode.Wake, version string, first []*mvccpb.KeyValue) []clientv3.Op {
	for i, w := range wakes {
		own := func(x casnode.Wake) bool { return x.Process == w.Process }
		if w.Process == "" || slices.ContainsFunc(wakes[:i], own) {
			continue
		}
		var texts []string
		for _, x := range wakes[i:] {
			if !own(x) {
				continue
			}
			text := version + "|" + x.Text
			for _, kv := range first {
				if x.Waiter != "" && !isOf(kv, x.Waiter) {
					text += "|" + strings.TrimPrefix(string(kv.Key), s.prefix) + " " + string(kv.Value)
				}
			}
			texts = append(texts, text)
		}
		key := s.inbox(w.Process)
		ops = append(ops, clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "!=", 0)},
			[]clientv3.Op{clientv3.OpPut(key, strings.Join(texts, "\n"), clientv3.WithIgnoreLease())}, nil))
	}
	return ops
}

// Hear watches the inbox of a process. Each of its values is an event.
func (s *store) Hear(ctx context.Context, process string, ready func(), heard func(string)) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	l, err := s.lease(ctx, process, 0)
	if err == nil && !l.inbox { // nobody writes to one that is not there
		if _, err = s.txn(ctx, nil, s.opening(process, l)); err == nil {
			s.opened(process, l)
		}
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for r := range client.Watch(clientv3.WithRequireLeader(ctx), s.inbox(process), clientv3.WithCreatedNotify(), clientv3.WithFilterDelete()) {
		if err := r.Err(); err != nil {
			return explain(err)
		}
		if r.Created {
			ready()
		}
		for _, e := range r.Events {
			for wake := range strings.SplitSeq(string(e.Kv.Value), "\n") {
				if parts := strings.Split(wake, "|"); len(parts) > 1 { // else it was created
					var kvs []*mvccpb.KeyValue
					for _, place := range parts[2:] {
						key, value, _ := strings.Cut(place, " ")
						kvs = append(kvs, &mvccpb.KeyValue{Key: []byte(s.prefix + key), Value: []byte(value)})
					}
					s.saw(parts[0], kvs)
					heard(parts[1])
				}
			}
		}
	}
	return cmp.Or(ctx.Err(), errors.New("the watch has ended"))
}
