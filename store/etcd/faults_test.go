//go:build unix

package etcd_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/certs"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/rowtest"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/risk"
	"github.com/redlatch/redlatch/store/casnode"
	"github.com/redlatch/redlatch/store/etcd"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// limited returns a context that ends: no test waits for ever.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// do executes a request.
func do(t testing.TB, n node.Node, req node.Request) node.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := n.Do(ctx, req)
	check.Must(t, err)
	return r
}

func acquire(name, value string, ttl time.Duration) node.Request {
	return node.Request{Op: node.OpAcquire, Name: name, Value: value, TTL: ttl}
}

// want checks the status of a request.
func want(t testing.TB, n node.Node, req node.Request, status node.Status) {
	t.Helper()
	if r := do(t, n, req); r.Status != status {
		t.Fatalf("%v of %s by %q: %v, want %v", req.Op, req.Name, req.Value, r.Status, status)
	}
}

// leader waits until one of the members leads.
func leader(t testing.TB, members []*servertest.Database) (leads *servertest.Database, others []*servertest.Database) {
	t.Helper()
	c := operator(t, addresses(members))
	poll.Within(t, time.Minute, func() error {
		for i, m := range members {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			s, err := c.Status(ctx, m.Addr())
			cancel()
			if err == nil && s.Leader == s.Header.MemberId {
				leads, others = m, slices.Delete(slices.Clone(members), i, i+1)
				return nil
			}
		}
		return errors.New("there is no leader")
	})
	return leads, others
}

// operator returns a client of an operator.
func operator(t testing.TB, hosts string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(hosts, "+"), DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func addresses(members []*servertest.Database) string {
	return strings.Join(servertest.Hosts(members), "+")
}

// own starts a cluster for one test.
func own(t testing.TB, n int, flags ...string) []*servertest.Database {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs etcd, and -short starts no servers")
	}
	members, err := start(n, flags...)
	t.Cleanup(func() {
		for _, m := range members {
			m.Stop()
		}
	})
	check.Must(t, err)
	return members
}

func TestDeposedLeaderGivesNoAnswerThatCounts(t *testing.T) {
	t.Parallel()
	rowtest.Deposed(t, own(t, 3), leader, func(t testing.TB, members ...*servertest.Database) node.Node {
		return open(t, addresses(members), "deposed")
	})
}

// TestErrorsOfAClusterWithoutALeader kills two members of three.
func TestErrorsOfAClusterWithoutALeader(t *testing.T) {
	t.Parallel()
	members := own(t, 3)
	n := open(t, members[0].Addr(), "job")
	want(t, n, acquire("job", "one", time.Minute), node.Granted)
	members[1].Kill()
	members[2].Kill()
	var err error
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err = n.Do(ctx, acquire("job", "two", time.Minute))
		cancel()
		if errors.Is(err, etcd.ErrNoLeader) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Errorf("the error is %v", err)
}

// TestErrorsOfUsers switches authentication on.
func TestErrorsOfUsers(t *testing.T) {
	t.Parallel()
	members := own(t, 1)
	at := members[0].Addr()
	c := operator(t, at)
	ctx := limited(t)
	for _, role := range []string{"root", "locks", "others"} {
		_, roleErr := c.RoleAdd(ctx, role)
		_, userErr := c.UserAdd(ctx, role, "secret")
		_, grantErr := c.UserGrantRole(ctx, role, role)
		check.Must(t, errors.Join(roleErr, userErr, grantErr))
	}
	_, err := c.RoleGrantPermission(ctx, "locks", "locks/", clientv3.GetPrefixRangeEnd("locks/"), clientv3.PermissionType(clientv3.PermReadWrite))
	check.Must(t, err)
	_, err = c.AuthEnable(ctx)
	check.Must(t, err)
	for _, test := range []struct {
		address string
		works   bool
	}{
		{"etcd://locks:secret@" + at + "/locks", true},
		{"etcd://locks:wrong@" + at + "/locks", false},
		{"etcd://others:secret@" + at + "/locks", false},
		{"etcd://" + at + "/locks", false},
	} {
		n, err := etcd.Open(test.address, nil)
		check.Must(t, err)
		for err = context.DeadlineExceeded; errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; { // it is slow to sign in
			_, err = n.Do(ctx, acquire("job", rand.Text(), time.Second))
		}
		if test.works != (err == nil) || !test.works && !errors.Is(err, etcd.ErrAuth) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", test.address, err)
		}
		if !test.works && !errors.Is(err, node.ErrUnsent) {
			t.Errorf("%s: it is not said that nothing was done: %v", test.address, err)
		}
		n.Close()
	}
	// The password is changed while a client is connected.
	n := open(t, "locks:secret@"+at, "locks")
	do(t, n, acquire("job", rand.Text(), time.Second))
	_, err = etcd.Store(n).(casnode.Placer).Put(ctx, casnode.Place{Name: "job", Waiter: "one", Process: "P"}, false)
	check.Must(t, err)
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, Username: "root", Password: "secret", DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check.Must(t, err)
	defer root.Close()
	_, err = root.UserChangePassword(ctx, "locks", "another")
	check.Must(t, err)
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := n.Do(short, acquire("job", rand.Text(), time.Second)); !errors.Is(err, etcd.ErrAuth) {
		t.Errorf("after the password was changed: %v", err)
	}
	_, err = root.UserChangePassword(ctx, "locks", "secret")
	check.Must(t, err)
	// A user that may not use the key of the cluster.
	if err := together(open(t, "locks:secret@"+at, "locks/first"), open(t, "locks:secret@"+at, "locks/second")); !duplicate(err) {
		t.Errorf("two prefixes: %v", err)
	}
}

// TestCompactionAndDefragmentationDisturbNobody compacts all revisions while a lock is
// held and waited for.
func TestCompactionAndDefragmentationDisturbNobody(t *testing.T) {
	t.Parallel()
	at, ctx := own(t, 1)[0].Addr(), limited(t)
	admin := operator(t, at)
	client := func() *redlatch.Client {
		c, err := redlatch.New([]redlatch.Node{open(t, at, "compacted")}, &redlatch.Options{AssumeFresh: true, NodeTimeout: 10 * time.Second})
		check.Must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	holder, waiter := client(), client()
	for range 5 {
		first, err := holder.Lock(ctx, "job", nil)
		check.Must(t, err)
		second := make(chan *redlatch.Lease, 1)
		go func() {
			l, err := waiter.Lock(ctx, "job", nil)
			if err != nil {
				t.Error(err)
			}
			second <- l
		}()
		<-first.Contended()
		r, err := admin.Put(ctx, "x", "")
		check.Must(t, err)
		_, err = admin.Compact(ctx, r.Header.Revision, clientv3.WithCompactPhysical())
		check.Must(t, err)
		_, err = admin.Defragment(ctx, at)
		check.Must(t, err)
		check.Must(t, first.Err())
		check.Must(t, first.Release(ctx))
		next := <-second
		if next == nil {
			return
		}
		if next.Token() <= first.Token() {
			exclusion.Never(t, "token %v after %v", next.Token(), first.Token())
		}
		check.Must(t, next.Release(ctx))
	}
}

// TestKeysThatWereRemovedShow removes all keys, as etcdctl del --prefix does.
func TestKeysThatWereRemovedShow(t *testing.T) {
	t.Parallel()
	at, prefix := hosts(t, "three"), "removed-"+rand.Text()
	admin := operator(t, at)
	n, ctx := open(t, at, prefix), limited(t)
	before, _, err := n.Node.Identity(ctx)
	check.Must(t, err)
	for _, key := range []string{"/", "/id", "/floor", "/v"} {
		_, err = admin.Delete(ctx, prefix+key, clientv3.WithPrefix())
		check.Must(t, err)
		after, _, err := n.Node.Identity(ctx)
		check.Must(t, err)
		if after == before {
			t.Errorf("after %s was removed the identity is the same", key)
		}
		before = after
	}
}

// TestErrorsOfAFullDatabase fills the database up to its quota. Nothing is granted, and
// nothing was done; locks can still be looked at.
func TestErrorsOfAFullDatabase(t *testing.T) {
	t.Parallel()
	at := own(t, 1, "--quota-backend-bytes", "1048576")[0].Addr()
	admin := operator(t, at)
	n, ctx := open(t, at, "full"), limited(t)
	want(t, n, acquire("job", "one", time.Minute), node.Granted)
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		_, err = admin.Put(ctx, fmt.Sprint("filler ", i), strings.Repeat("x", 100_000))
	}
	if _, err := n.Do(ctx, acquire("other", "one", time.Minute)); !errors.Is(err, etcd.ErrNoSpace) || !errors.Is(err, node.ErrUnsent) {
		t.Errorf("an acquire: %v", err)
	}
	want(t, n, node.Request{Op: node.OpInspect, Name: "job"}, node.Held)
	if found := examine(t, n); !strings.Contains(found, "danger space: the database is full") || !strings.Contains(found, "danger rights") {
		t.Errorf("an examination finds\n%s", found)
	}
}

// examine returns what an examination finds.
func examine(t testing.TB, n *etcd.Node) string {
	t.Helper()
	all, err := n.Examine(limited(t), risk.Exam{Name: "examined", Window: time.Minute})
	check.Must(t, err)
	var text strings.Builder
	for _, f := range all {
		fmt.Fprintf(&text, "%v %s: %s\n", f.Severity, f.Check, f.Found)
	}
	return text.String()
}

// TestTwoPrefixesOfOneClusterAreOneServer lists a cluster twice, under two prefixes.
func TestTwoPrefixesOfOneClusterAreOneServer(t *testing.T) {
	t.Parallel()
	at := hosts(t, "three")
	if err := together(open(t, at, "first"), open(t, hosts(t, "other"), "first"), open(t, at, "second")); !duplicate(err) {
		t.Errorf("two prefixes: %v", err)
	}
	check.Must(t, together(open(t, at, "third"), open(t, hosts(t, "other"), "third")))
}

// together returns the error of a client that has all nodes.
func together(nodes ...redlatch.Node) error {
	c, err := redlatch.New(nodes, &redlatch.Options{NodeTimeout: 10 * time.Second})
	if err == nil {
		_, err = c.TryLock(context.Background(), "job", nil) // New does not wait for long
		c.Close()
	}
	if errors.Is(err, redlatch.ErrQuarantine) {
		return nil
	}
	return err
}

func duplicate(err error) bool {
	return err != nil && strings.Contains(err.Error(), "duplicate server")
}

func TestExaminationFindsMembersAndTimers(t *testing.T) {
	t.Parallel()
	at, prefix := hosts(t, "three"), "examined/"+rand.Text()
	n := open(t, at, prefix)
	want(t, n, acquire("job", "one", time.Minute), node.Granted)
	want(t, n, acquire("job", "two", time.Minute), node.Held)
	found := examine(t, n)
	for _, want := range []string{"fine rights", "fine members: the cluster has 3 members, of which 1 may fail", "fine timers: timers that run, for callers that were refused and left: 1\n"} {
		if !strings.Contains(found, want) {
			t.Errorf("it finds\n%swant %s", found, want)
		}
	}
}

// TestExaminationSaysThatNothingIsCompacted has a database with some thousand revisions,
// which is then compacted.
func TestExaminationSaysThatNothingIsCompacted(t *testing.T) {
	t.Parallel()
	at := own(t, 1)[0].Addr()
	admin := operator(t, at)
	n, ctx := open(t, at, "grown"), limited(t)
	do(t, n, acquire("job", "one", time.Minute))
	if found := examine(t, n); strings.Contains(found, "compact") {
		t.Errorf("on a new database it finds\n%s", found)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 {
				if _, err := admin.Put(ctx, "grown", "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if found := examine(t, n); !strings.Contains(found, "advice compaction: none of 1") {
		t.Errorf("it finds\n%s", found)
	}
	r, err := admin.Get(ctx, "grown")
	check.Must(t, err)
	_, err = admin.Compact(ctx, r.Header.Revision)
	check.Must(t, err)
	if found := examine(t, n); !strings.Contains(found, "fine compaction") {
		t.Errorf("when it is compacted it finds\n%s", found)
	}
}

// TestStoppedFollowerDelaysOneRequest stops a follower of three, whose connection stays
// open. One request may wait for it in vain.
func TestStoppedFollowerDelaysOneRequest(t *testing.T) {
	t.Parallel()
	members := own(t, 3)
	n := open(t, addresses(members), "stopped")
	for i := range 9 { // each member is connected
		do(t, n, acquire(fmt.Sprint("before ", i), "one", time.Minute))
	}
	_, followers := leader(t, members)
	check.Must(t, followers[0].Freeze())
	var failed []error
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := n.Do(ctx, acquire(fmt.Sprint("job ", i), "one", time.Minute)); err != nil {
			failed = append(failed, err)
		}
		cancel()
	}
	if len(failed) > 1 {
		t.Errorf("%d of 20 requests had no answer: %v", len(failed), failed)
	}
}

// reached asks an address once.
func reached(t testing.TB, address string) error {
	t.Helper()
	n, err := etcd.Open(address, nil)
	check.Must(t, err)
	defer n.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = n.Do(ctx, acquire("job", rand.Text(), time.Second))
	return err
}

// TestSecureConnections has servers with a certificate of their own: one for its
// address, one for a name, and one that asks for the client's. Errors name their cause.
func TestSecureConnections(t *testing.T) {
	t.Parallel()
	const name = "locks.example"
	cert, key := certs.SelfSigned(t, "127.0.0.1")
	named, namedKey := certs.SelfSigned(t, name)
	at := own(t, 1, "SECURE-CLIENTS="+cert+","+key)[0].Addr()
	byName := own(t, 1, "SECURE-CLIENTS="+named+","+namedKey)[0].Addr()
	asking := own(t, 1, "SECURE-CLIENTS="+cert+","+key, "--client-cert-auth", "--trusted-ca-file", cert)[0].Addr()
	var all sync.WaitGroup
	for address, want := range map[string]string{
		"etcds://" + at + "/locks?tls_ca=" + cert:                                               "",
		"etcds://" + at + "/locks":                                                              "certificate",
		"etcd://" + at + "/locks":                                                               "TLS",
		"etcds://" + byName + "/locks?tls_ca=" + named:                                          "certificate",
		"etcds://" + byName + "/locks?tls_ca=" + named + "&tls_server_name=" + name:             "",
		"etcds://" + at + "/locks?tls_ca=" + cert + "&tls_server_name=" + name:                  name,
		"etcds://" + asking + "/locks?tls_ca=" + cert:                                           "certificate",
		"etcds://" + asking + "/locks?tls_ca=" + cert + "&tls_cert=" + cert + "&tls_key=" + key: "",
	} {
		all.Go(func() {
			if err := reached(t, address); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want one with %q", address, err, want)
			}
		})
	}
	all.Wait()
}

// TestErrorsSayWhyNobodyAnswers has addresses at which there is no etcd.
func TestErrorsSayWhyNobodyAnswers(t *testing.T) {
	t.Parallel()
	port, err := redisproc.FreePort()
	check.Must(t, err)
	var all sync.WaitGroup
	for address, want := range map[string]string{
		fmt.Sprint("etcd://127.0.0.1:", port):               "connection refused",
		fmt.Sprint("etcd://user:password@127.0.0.1:", port): "connection refused",
		"etcd://no..host": "no such host",
	} {
		all.Go(func() {
			if err := reached(t, address); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: the error is %v, want one with %q", address, err, want)
			}
		})
	}
	all.Wait()
}

// TestClientOfTheProgramStaysOpen has two nodes over one client.
func TestClientOfTheProgramStaysOpen(t *testing.T) {
	t.Parallel()
	at, prefix := hosts(t, "three"), "from/"+rand.Text()
	c := operator(t, at)
	first, err := etcd.From(c, &etcd.Options{Prefix: prefix})
	check.Must(t, err)
	second, err := etcd.From(c, &etcd.Options{Prefix: prefix + "/"})
	check.Must(t, err)
	if first.String() != second.String() || first.String() != open(t, at, prefix).String() {
		t.Errorf("the names are %s and %s", first, second)
	}
	do(t, first, acquire("job", "one", time.Minute))
	check.Must(t, first.Close())
	want(t, second, acquire("job", "two", time.Minute), node.Held)
	if _, err := first.Do(limited(t), acquire("job", "two", time.Minute)); err == nil {
		t.Error("a node that is closed answers")
	}
}

// placer returns a store that is prepared, and what its keys begin with.
func placer(t testing.TB, at string) (casnode.Placer, string) {
	prefix := "places/" + rand.Text()
	n := open(t, at, prefix)
	_, _, err := n.Node.Identity(limited(t))
	check.Must(t, err)
	return etcd.Store(n).(casnode.Placer), prefix
}

// TestProcessWhoseLeaseHasEndedPutsItsPlacesAnew revokes it, which ends its places.
func TestProcessWhoseLeaseHasEndedPutsItsPlacesAnew(t *testing.T) {
	t.Parallel()
	at, ctx := hosts(t, "three"), limited(t)
	s, prefix := placer(t, at)
	admin := operator(t, at)
	job := casnode.Place{Name: "job", Waiter: "one", Process: "P", Ticket: 1}
	end := func() {
		leases := map[int64]bool{}
		for kind, want := range map[string]int64{"/q/": 1, "/w/P": 1} {
			r, err := admin.Get(ctx, prefix+kind, clientv3.WithPrefix())
			check.Must(t, err)
			if r.Count != want || r.Kvs[0].Lease == 0 {
				t.Fatalf("there are %v, want one key with a lease", r.Kvs)
			}
			leases[r.Kvs[0].Lease] = true
		}
		for id := range leases {
			_, err := admin.Revoke(ctx, clientv3.LeaseID(id))
			check.Must(t, err)
		}
		if r, err := admin.Get(ctx, prefix+"/q/", clientv3.WithPrefix()); err != nil || r.Count != 0 || len(leases) != 1 {
			t.Fatalf("after %d leases have ended there are %d places: %v", len(leases), r.Count, err)
		}
	}
	for round, again := range []bool{false, true, false, true} {
		if seen, err := s.Put(ctx, job, again); err != nil || !slices.Equal(seen.Places, []casnode.Place{job}) || seen.Rank != 1 {
			t.Errorf("round %d: the places are %v, its rank %d: %v", round, seen.Places, seen.Rank, err)
		}
		if lived, err := s.Live(ctx, "P"); !lived || err != nil {
			t.Errorf("round %d: it is said not to live: %v", round, err)
		}
		if end(); round > 1 {
			if lived, err := s.Live(ctx, "P"); lived || err != nil {
				t.Errorf("round %d: it is said to have lived: %v", round, err)
			}
		}
	}
}

// TestWhoIsWokenReadsNoPlaces has those that come with a wake go before they are used.
func TestWhoIsWokenReadsNoPlaces(t *testing.T) {
	t.Parallel()
	at, ctx := hosts(t, "three"), limited(t)
	p, prefix := placer(t, at)
	a, b := p.(casnode.Store), etcd.Store(open(t, at, prefix))
	heard := make(chan string, 2)
	go b.(casnode.Hearer).Hear(ctx, "B", func() { heard <- "" }, func(text string) { heard <- text })
	<-heard
	own, next := casnode.Place{Name: "job", Waiter: "own", Process: "B"}, casnode.Place{Name: "job", Waiter: "next", Process: "P", Ticket: 1}
	swap := func(s casnode.Store, w casnode.Write) casnode.Snapshot {
		seen, err := a.Read(ctx, "job")
		check.Must(t, err)
		w.Row = casnode.Row{Name: "job", Version: rand.Text(), State: []byte("x")}
		done, seen, err := s.Swap(ctx, seen, w)
		if !done || err != nil {
			t.Fatalf("a Swap: %v, %v", done, err)
		}
		return seen
	}
	swap(a, casnode.Write{})
	_, err := b.(casnode.Placer).Put(ctx, own, false)
	check.Must(t, err)
	_, err = p.Put(ctx, next, false)
	check.Must(t, err)
	swap(a, casnode.Write{Wakes: []casnode.Wake{{Process: "B", Text: "1 2", Waiter: "own"}}})
	text := <-heard
	check.Must(t, p.Evict(ctx, "job", "P"))
	if seen := swap(b, casnode.Write{Drop: &own, Look: true, Near: true}); text != "1 2" || !slices.Equal(seen.Places, []casnode.Place{next}) {
		t.Errorf("it heard %q; the places are %v", text, seen.Places)
	}
}

// TestPlacesUseTheirKeysAgain has a process come and go. Each key that was deleted would
// be walked over until the database is compacted.
func TestPlacesUseTheirKeysAgain(t *testing.T) {
	t.Parallel()
	at, ctx := hosts(t, "other"), limited(t)
	s, prefix := placer(t, at)
	admin := operator(t, at)
	before, err := admin.Get(ctx, "x")
	check.Must(t, err)
	const rounds = 1000
	for i := range rounds { // there are two at most
		_, err := s.Put(ctx, casnode.Place{Name: "job", Waiter: fmt.Sprint("w", i), Process: "P", Ticket: int64(i)}, false)
		check.Must(t, err)
		_, err = s.Drop(ctx, casnode.Place{Name: "job", Waiter: fmt.Sprint("w", i-1), Process: "P"})
		check.Must(t, err)
	}
	keys, puts := map[string]bool{}, 0
	watch := admin.Watch(ctx, prefix+"/q/", clientv3.WithPrefix(), clientv3.WithRev(before.Header.Revision+1), clientv3.WithFilterDelete())
	for r := range watch {
		check.Must(t, r.Err())
		for _, e := range r.Events {
			keys[string(e.Kv.Key)] = true
			puts++
		}
		if puts >= rounds {
			break
		}
	}
	if len(keys) != 2 {
		t.Errorf("%d places, of which two were there at a time, had %d keys, want 2", puts, len(keys))
	}
}
