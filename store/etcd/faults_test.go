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
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/certs"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
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
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func acquire(name, value string, ttl time.Duration) node.Request {
	return node.Request{Op: node.OpAcquire, Name: name, Value: value, TTL: ttl}
}

// TestCrashedHoldersLockIsHadByNewProcesses has a client for each try, which stays for
// the length of one request. One of them gets the lock at its first try later than the
// time that was left when the first was refused, and 3 s.
func TestCrashedHoldersLockIsHadByNewProcesses(t *testing.T) {
	t.Parallel()
	hosts(t, "one")
	stall.Retry(t, newProcessesGetIt)
}

func newProcessesGetIt(t testing.TB) {
	at, prefix := hosts(t, "one"), "crash/"+rand.Text()
	const ttl, every = 6 * time.Second, 500 * time.Millisecond
	began := time.Now()
	if r := do(t, open(t, at, prefix), acquire("job", "crashed", ttl)); r.Status != node.Granted {
		t.Fatal(r.Status)
	}
	var left time.Duration
	var refused time.Time
	for i := 0; ; i++ {
		n := open(t, at, prefix)
		asked := time.Now()
		r := do(t, n, acquire("job", fmt.Sprint("try ", i), ttl))
		n.Close()
		if i == 0 {
			left, refused = r.Left, time.Now()
		}
		switch {
		case r.Status == node.Granted && time.Since(began) < ttl:
			exclusion.Never(t, "it was granted %v after it was taken for %v", time.Since(began), ttl)
		case r.Status == node.Granted:
			t.Logf("granted %v after the first refusal, with %v left then", time.Since(refused), left)
			return
		case asked.Sub(refused) > left+3*time.Second:
			stall.Busy(t, 200*time.Millisecond, began)
			t.Fatalf("refused %v after the first refusal, with %v left then: %v for %v", asked.Sub(refused), left, r.Status, r.Left)
		}
		time.Sleep(every)
	}
}

// TestExtensionByANewcomerRestartsTheCount has a client that has never seen the lock
// extend it, after another one has observed it for most of its time.
func TestExtensionByANewcomerRestartsTheCount(t *testing.T) {
	t.Parallel()
	at, prefix := hosts(t, "one"), "newcomer/"+rand.Text()
	observed.Newcomer(t, func() node.Node { return open(t, at, prefix) })
}

// TestWallClocksHoursApartMakeNoSecondHolder has clients in processes whose wall clocks
// differ.
func TestWallClocksHoursApartMakeNoSecondHolder(t *testing.T) {
	t.Parallel()
	at, prefix := hosts(t, "one"), "clocks/"+rand.Text()
	observed.WallClocks(t, func(clock *casnode.Options) node.Node {
		n := open(t, at, prefix)
		n.Node = casnode.New(etcd.Store(n), clock)
		return n
	})
}

// rivals are clients that contend for a lock.
func rivals(t *testing.T, at, prefix string, n int) (all []observed.Rival) {
	for range n {
		all = append(all, observed.Rival{Node: open(t, at, prefix)})
	}
	return all
}

// leader returns which member is the leader.
func leader(t testing.TB, members []*servertest.Database) int {
	t.Helper()
	for range 600 {
		for i, m := range members {
			c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Addr()}, DialTimeout: time.Second, Logger: zap.NewNop()})
			if err != nil {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			s, err := c.Status(ctx, m.Addr())
			cancel()
			c.Close()
			if err == nil && s.Leader == s.Header.MemberId {
				return i
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("there is no leader")
	return 0
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

// TestLeadersThatStopAndComeBackMakeNoSecondHolder stops leaders, and has them go on
// with requests in their sockets, and kills some, while clients contend.
func TestLeadersThatStopAndComeBackMakeNoSecondHolder(t *testing.T) {
	t.Parallel()
	members := own(t, 3)
	var rounds atomic.Int32
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
			m := members[leader(t, members)]
			if rounds.Load()%4 == 3 {
				m.Kill()
				time.Sleep(2 * time.Second)
				if err := m.Start(); err != nil {
					t.Error(err)
				}
			} else {
				if err := m.Freeze(); err != nil {
					t.Error(err)
				}
				time.Sleep(2500 * time.Millisecond)
				if err := m.Thaw(); err != nil {
					t.Error(err)
				}
			}
			rounds.Add(1)
		}
	}()
	stops := int32(observed.Rounds(8))
	observed.Contend(t, rivals(t, addresses(members), "storm", 4), 12, func() bool { return rounds.Load() >= stops })
	close(done)
	<-ended
	t.Logf("%d leaders that stopped", rounds.Load())
}

// TestDeposedLeaderGivesNoAnswerThatCounts freezes the leader, has the others elect one
// and grant a lock, and sends requests to the former leader, which finds them in its
// socket when it goes on. It may not know that it was deposed.
func TestDeposedLeaderGivesNoAnswerThatCounts(t *testing.T) {
	t.Parallel()
	members := own(t, 3)
	for round := range observed.Rounds(2) {
		l := leader(t, members)
		former, others := members[l], slices.Delete(slices.Clone(members), l, l+1)
		ask := func(op node.Op, value string) node.Request {
			return node.Request{Op: op, Name: fmt.Sprint("job ", round), Value: value, TTL: time.Minute, Retention: time.Hour, Occurrence: "today"}
		}
		answers := map[node.Op]node.Status{node.OpInspect: node.Held, node.OpCheck: node.Granted, node.OpAcquire: node.Held, node.OpExtend: node.Granted}
		requests := []node.Request{ask(node.OpInspect, ""), ask(node.OpCheck, ""), ask(node.OpAcquire, "two"), ask(node.OpExtend, "one")}
		stale := make([]*etcd.Node, len(requests))
		for i := range stale {
			stale[i] = open(t, former.Addr(), "deposed")
			if r := do(t, stale[i], ask(node.OpInspect, "")); r.Status != node.Absent {
				t.Fatal(r.Status)
			}
		}
		check.Must(t, former.Freeze())
		leader(t, others)
		fresh := open(t, addresses(others), "deposed")
		for _, req := range []node.Request{ask(node.OpAcquire, "one"), ask(node.OpComplete, "")} {
			if r := do(t, fresh, req); r.Status != node.Granted {
				t.Fatalf("%v by the others: %v", req.Op, r.Status)
			}
		}
		var all sync.WaitGroup
		for i, req := range requests {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				if r, err := stale[i].Do(ctx, req); err == nil && r.Status != answers[req.Op] {
					t.Errorf("round %d: %v by the former leader: %v", round, req.Op, r.Status)
				}
			})
		}
		time.Sleep(200 * time.Millisecond) // they are in the socket
		check.Must(t, former.Thaw())
		all.Wait()
		if r := do(t, fresh, ask(node.OpExtend, "one")); r.Status != node.Granted {
			t.Errorf("round %d: the holder's extension: %v", round, r.Status)
		}
		for _, n := range append(stale, fresh) {
			n.Close()
		}
	}
}

// TestErrorsOfAClusterWithoutALeader kills two members of three.
func TestErrorsOfAClusterWithoutALeader(t *testing.T) {
	t.Parallel()
	members := own(t, 3)
	n := open(t, members[0].Addr(), "job")
	if r := do(t, n, acquire("job", "one", time.Minute)); r.Status != node.Granted {
		t.Fatal(r.Status)
	}
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
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check.Must(t, err)
	defer c.Close()
	ctx := limited(t)
	for _, role := range []string{"root", "locks", "others"} {
		_, err = c.RoleAdd(ctx, role)
		check.Must(t, err)
		_, err = c.UserAdd(ctx, role, "secret")
		check.Must(t, err)
		_, err = c.UserGrantRole(ctx, role, role)
		check.Must(t, err)
	}
	_, err = c.RoleGrantPermission(ctx, "locks", "locks/", clientv3.GetPrefixRangeEnd("locks/"), clientv3.PermissionType(clientv3.PermReadWrite))
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
		_, err = n.Do(ctx, acquire("job", rand.Text(), time.Second))
		if test.works != (err == nil) || !test.works && !errors.Is(err, etcd.ErrAuth) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", test.address, err)
		}
		if !test.works && !errors.Is(err, node.ErrUnsent) {
			t.Errorf("%s: it is not said that nothing was done: %v", test.address, err)
		}
		n.Close()
	}
	// The password is changed while a client is connected.
	n, err := etcd.Open("etcd://locks:secret@"+at+"/locks", nil)
	check.Must(t, err)
	defer n.Close()
	do(t, n, acquire("job", rand.Text(), time.Second))
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
	members := own(t, 1)
	at := members[0].Addr()
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check.Must(t, err)
	defer admin.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var compacted atomic.Int32
	go func() {
		for ctx.Err() == nil {
			if r, err := admin.Get(ctx, "x"); err == nil {
				if _, err := admin.Compact(ctx, r.Header.Revision, clientv3.WithCompactPhysical()); err == nil {
					compacted.Add(1)
				}
				_, _ = admin.Defragment(ctx, at)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	observed.Contend(t, rivals(t, at, "compacted", 3), 20, func() bool { return compacted.Load() >= int32(observed.Rounds(10)) })
	t.Logf("compacted %d times", compacted.Load())
}

// TestKeysThatWereRemovedShow removes all keys, as etcdctl del --prefix does.
func TestKeysThatWereRemovedShow(t *testing.T) {
	t.Parallel()
	at, prefix := hosts(t, "one"), "removed-"+rand.Text()
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check.Must(t, err)
	defer admin.Close()
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
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check.Must(t, err)
	defer admin.Close()
	n, ctx := open(t, at, "full"), limited(t)
	if r := do(t, n, acquire("job", "one", time.Minute)); r.Status != node.Granted {
		t.Fatal(r.Status)
	}
	for i := range 100 {
		if _, err = admin.Put(ctx, fmt.Sprint("filler ", i), strings.Repeat("x", 100_000)); err != nil {
			break
		}
	}
	if _, err = n.Do(ctx, acquire("other", "one", time.Minute)); !errors.Is(err, etcd.ErrNoSpace) || !errors.Is(err, node.ErrUnsent) {
		t.Errorf("an acquire: %v", err)
	}
	if r := do(t, n, node.Request{Op: node.OpInspect, Name: "job"}); r.Status != node.Held {
		t.Errorf("an inspection: %v", r.Status)
	}
	if found := examine(t, n); !strings.Contains(found, "danger space: the database is full") || !strings.Contains(found, "danger rights") {
		t.Errorf("an examination finds\n%s", found)
	}
}

// examine returns what an examination finds.
func examine(t testing.TB, n *etcd.Node) string {
	t.Helper()
	all, err := n.Examine(limited(t), node.Exam{Name: "examined", Window: time.Minute})
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
	at := hosts(t, "one")
	if err := together(open(t, at, "first"), open(t, hosts(t, "other"), "first"), open(t, at, "second")); !duplicate(err) {
		t.Errorf("two prefixes: %v", err)
	}
	check.Must(t, together(open(t, at, "third"), open(t, hosts(t, "other"), "third"), open(t, hosts(t, "three"), "third")))
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
	do(t, n, acquire("job", "one", time.Minute))
	do(t, n, acquire("job", "two", time.Minute))
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
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check.Must(t, err)
	defer admin.Close()
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

// TestMemberThatIsRemovedIsNotMissed removes the leader of three members: the others go
// on.
func TestMemberThatIsRemovedIsNotMissed(t *testing.T) {
	t.Parallel()
	members := own(t, 3)
	at := members[leader(t, members)].Addr()
	n, ctx := open(t, addresses(members), "job"), limited(t)
	if r := do(t, n, acquire("job", "one", time.Minute)); r.Status != node.Granted {
		t.Fatal(r.Status)
	}
	admin, err := clientv3.New(clientv3.Config{Endpoints: servertest.Hosts(members), DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check.Must(t, err)
	defer admin.Close()
	s, err := admin.Status(ctx, at)
	check.Must(t, err)
	// Members that have just met are not removed, and a leader that removes itself
	// may not answer.
	poll.Within(t, 2*time.Minute, func() error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, failed := admin.MemberRemove(ctx, s.Header.MemberId)
		list, err := admin.MemberList(ctx)
		if err == nil && len(list.Members) == 3 {
			err = fmt.Errorf("it is still a member: %v", failed)
		}
		return err
	})
	alone := open(t, at, "job")
	for range 100 {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		r, err := n.Do(ctx, node.Request{Op: node.OpExtend, Name: "job", Value: "one", TTL: time.Minute})
		cancel()
		if err == nil {
			if r.Status != node.Granted {
				t.Errorf("an extension: %v", r.Status)
			}
			short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if _, err := alone.Do(short, acquire("job", "two", time.Minute)); err == nil {
				t.Error("the member that was removed answers")
			} else {
				t.Log("the member that was removed alone:", err)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the others do not go on")
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
	check.Must(t, members[(leader(t, members)+1)%3].Freeze())
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
	at, prefix := hosts(t, "one"), "from/"+rand.Text()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + at}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check.Must(t, err)
	defer c.Close()
	first, err := etcd.From(c, &etcd.Options{Prefix: prefix})
	check.Must(t, err)
	second, err := etcd.From(c, &etcd.Options{Prefix: prefix + "/"})
	check.Must(t, err)
	if first.String() != second.String() || first.String() != open(t, at, prefix).String() {
		t.Errorf("the names are %s and %s", first, second)
	}
	do(t, first, acquire("job", "one", time.Minute))
	check.Must(t, first.Close())
	if r := do(t, second, acquire("job", "two", time.Minute)); r.Status != node.Held {
		t.Errorf("the other node: %v", r.Status)
	}
	if _, err := first.Do(limited(t), acquire("job", "two", time.Minute)); err == nil {
		t.Error("a node that is closed answers")
	}
}
