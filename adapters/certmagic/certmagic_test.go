//go:build unix

package redlatchcertmagic_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/redlatch/redlatch"
	redlatchcertmagic "github.com/redlatch/redlatch/adapters/certmagic"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// lockName is what certmagic locks while it obtains or renews the certificate.
const lockName = "issue_cert_example.com"

var must = check.Must

// limited returns a context that ends, should a lock never be freed.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// waits waits until a caller waits for the lock.
func waits(t testing.TB, server *servertest.Server, name string) {
	t.Helper()
	nodes, err := direct.Nodes(server.URL())
	must(t, err)
	defer nodes[0].Close()
	poll.Until(t, "somebody waits for "+name, func() bool {
		look, err := nodes[0].(node.Lister).Look(t.Context(), name)
		return err == nil && look.Waiting > 0
	})
}

// start starts the program of this test, with locks on the servers.
func start(t testing.TB, name, dir string, servers []*servertest.Server, args ...string) *processes.Process {
	t.Helper()
	return processes.Start(t, name, nil, append([]string{"-dir", dir, "-nodes", strings.Join(servertest.Addresses(servers), ",")}, args...)...)
}

// TestCertificateOfAKilledProcessIsObtainedByTheNext kills a process while its
// certificate is issued.
func TestCertificateOfAKilledProcessIsObtainedByTheNext(t *testing.T) {
	t.Parallel()
	servers, _ := processes.Servers(t, 3)
	dir := t.TempDir()
	first := start(t, "first", dir, servers, "-hold", "10m")
	first.Line("issuing")
	second := start(t, "second", dir, servers)
	waits(t, servers[0], "certmagic/"+lockName)
	if said := second.Said(); said != "" {
		t.Errorf("the second says %q while the first issues", said)
	}
	first.Kill()
	second.Line("issuing")
	second.Line("obtained")
	second.Ends(0)
	third := start(t, "third", dir, servers)
	third.Ends(0)
	if third.Said() != "obtained" {
		t.Errorf("with the certificate in the storage the third says %q", third.Said())
	}
}

// TestRenewalsOfTwoProcessesNeverMeet has two processes renew one certificate
// again and again.
func TestRenewalsOfTwoProcessesNeverMeet(t *testing.T) {
	t.Parallel()
	servers, _ := processes.Servers(t, 3)
	dir := t.TempDir()
	var all []*processes.Process
	for _, name := range []string{"one", "other"} {
		all = append(all, start(t, name, dir, servers, "-hold", "20ms", "-renew", "12"))
	}
	issued := 0
	for _, p := range all {
		p.Ends(0)
		issued += strings.Count(p.Said(), "issuing")
	}
	if issued != 25 {
		t.Errorf("25 certificates are wanted, one and 24 renewals, and %d were issued", issued)
	}
}

// TestCertificatesWithoutTheLockMeet shows that the tests above can fail.
func TestCertificatesWithoutTheLockMeet(t *testing.T) {
	t.Parallel()
	servertest.Need(t)
	dir := t.TempDir()
	start(t, "first", dir, nil, "-hold", "10m").Line("issuing")
	second := start(t, "second", dir, nil)
	if code := second.Wait(); code == 0 || !strings.Contains(second.Said(), "two issue at the same time") {
		t.Errorf("exits with %d: %s", code, second.Said())
	}
}

// wrap returns two storages on the same files and nodes.
func wrap(t testing.TB, locks *redlatch.Client, opts redlatchcertmagic.Options) (a, b *redlatchcertmagic.Storage) {
	t.Helper()
	files := &certmagic.FileStorage{Path: t.TempDir()}
	a, err := redlatchcertmagic.Wrap(files, locks, &opts)
	must(t, err)
	b, err = redlatchcertmagic.Wrap(files, locks, &opts)
	must(t, err)
	return a, b
}

func TestStorageLocksAndStores(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	_, locks := processes.Servers(t, 3)
	a, b := wrap(t, locks, redlatchcertmagic.Options{})
	must(t, a.Lock(ctx, "x"))
	if ok, err := b.TryLock(ctx, "x"); ok || err != nil {
		t.Errorf("trying a lock that is held: %v, %v", ok, err)
	}
	must(t, a.RenewLockLease(ctx, "x", time.Hour))
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := b.Lock(short, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a lock that is held: %v", err)
	}
	got := make(chan error)
	go func() { got <- b.Lock(ctx, "x") }()
	must(t, a.Unlock(ctx, "x"))
	must(t, <-got)
	must(t, b.Unlock(ctx, "x"))
	if ok, err := b.TryLock(ctx, "x"); !ok || err != nil {
		t.Errorf("trying a lock that is free: %v, %v", ok, err)
	}
	must(t, b.Unlock(ctx, "x"))
	for _, err := range []error{b.Unlock(ctx, "x"), b.RenewLockLease(ctx, "x", time.Hour)} {
		if err == nil || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("the error about a lock that is not held is %v", err)
		}
	}
	must(t, a.Store(ctx, "key", []byte("value")))
	if value, err := b.Load(ctx, "key"); err != nil || string(value) != "value" {
		t.Errorf("the other storage has %q, %v", value, err)
	}
	if !strings.Contains(a.String(), "FileStorage") {
		t.Errorf("the storage is called %s", a)
	}
}

// takeAway removes a lock from the servers.
func takeAway(servers []*servertest.Server, key string) {
	for _, s := range servers {
		s.Do("DEL", key)
	}
}

func TestLossIsReturnedByUnlock(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	servers, locks := processes.Servers(t, 3)
	a, b := wrap(t, locks, redlatchcertmagic.Options{Prefix: "p/", TTL: ttl})
	must(t, a.Lock(ctx, "x"))
	takeAway(servers, "p/x")
	must(t, b.Lock(ctx, "x"))
	if err := a.RenewLockLease(ctx, "x", time.Hour); !errors.Is(err, redlatch.ErrLost) || !errors.Is(err, redlatch.ErrHeld) {
		t.Errorf("renewing a lock that another has: %v", err)
	}
	// Another goroutine of the same process waits for the lock.
	got := make(chan error)
	go func() { got <- a.Lock(ctx, "x") }()
	must(t, b.Unlock(ctx, "x"))
	must(t, <-got)
	if err := a.Unlock(ctx, "x"); !errors.Is(err, redlatch.ErrLost) {
		t.Errorf("unlocking a lock that is lost: %v", err)
	}
	if ok, err := b.TryLock(ctx, "x"); ok || err != nil {
		t.Errorf("the lock of the other goroutine is gone: %v, %v", ok, err)
	}
	must(t, a.Unlock(ctx, "x"))
}

func TestLockThatIsLostIsAcquiredAgainBeforeTheNextAttempt(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	servers, locks := processes.Servers(t, 3)
	a, b := wrap(t, locks, redlatchcertmagic.Options{Prefix: "p/", TTL: ttl})
	must(t, a.Lock(ctx, "x"))
	takeAway(servers, "p/x")
	must(t, a.RenewLockLease(ctx, "x", time.Hour))
	if ok, err := b.TryLock(ctx, "x"); ok || err != nil {
		t.Errorf("the lock is not held after its renewal: %v, %v", ok, err)
	}
	if err := a.Unlock(ctx, "x"); !errors.Is(err, redlatch.ErrLost) {
		t.Errorf("unlocking does not return the loss: %v", err)
	}
	if ok, err := b.TryLock(ctx, "x"); !ok || err != nil {
		t.Errorf("the lock is not free after Unlock: %v, %v", ok, err)
	}
}

// TestSlowServersAreNoLoss has no majority of servers for a moment.
func TestSlowServersAreNoLoss(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	servers := servertest.Redis(t, 3)
	locks, err := redlatch.Open(strings.Join(servertest.Addresses(servers), ","), &redlatch.Options{AssumeFresh: true, NodeTimeout: 100 * time.Millisecond})
	must(t, err)
	defer locks.Close()
	a, _ := wrap(t, locks, redlatchcertmagic.Options{TTL: 20 * time.Second})
	poll.Until(t, "it is locked", func() bool { return a.Lock(ctx, "x") == nil })
	servers[0].Freeze()
	servers[1].Freeze()
	must(t, a.RenewLockLease(ctx, "x", time.Hour))
	servers[0].Thaw()
	servers[1].Thaw()
	if err := a.Unlock(ctx, "x"); errors.Is(err, redlatch.ErrLost) {
		t.Error(err)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	files := &certmagic.FileStorage{Path: t.TempDir()}
	_, err1 := redlatchcertmagic.Wrap(nil, &redlatch.Client{}, nil)
	_, err2 := redlatchcertmagic.Wrap(files, nil, nil)
	_, err3 := redlatchcertmagic.Wrap(files, &redlatch.Client{}, &redlatchcertmagic.Options{TTL: -1})
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, redlatch.ErrConfig) {
			t.Errorf("the error is %v", err)
		}
	}
}
