//go:build unix

package redlatchcertmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/redlatch/redlatch"
	redlatchcertmagic "github.com/redlatch/redlatch/adapters/certmagic"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// ttl is that of locks that are lost.
const ttl = 2 * time.Second

var must = check.Must

// limited returns a context that ends, should a lock never be freed.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// authority issues certificates. It notes whether it is asked twice at the same time.
type authority struct {
	busy, met atomic.Bool
	issued    atomic.Int32
}

func (*authority) IssuerKey() string { return "authority" }

func (a *authority) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if a.busy.Swap(true) {
		a.met.Store(true)
	}
	defer a.busy.Store(false)
	a.issued.Add(1)
	time.Sleep(20 * time.Millisecond) // in which another could come
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: csr.Subject, DNSNames: csr.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, &x509.Certificate{}, csr.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// TestOneOfTwoRenewsACertificate has two copies of a program obtain a certificate, and
// renew it again and again.
func TestOneOfTwoRenewsACertificate(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	servers, _ := processes.Servers(t, 3)
	files, a := &certmagic.FileStorage{Path: t.TempDir()}, &authority{}
	var copies sync.WaitGroup
	for range 2 {
		storage, err := redlatchcertmagic.Wrap(files, processes.Client(t, servers), nil)
		must(t, err)
		var magic *certmagic.Config
		cache := certmagic.NewCache(certmagic.CacheOptions{
			GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return magic, nil },
			Logger:           zap.NewNop(),
		})
		defer cache.Stop()
		magic = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{a}, Logger: zap.NewNop(), DisableARI: true})
		copies.Go(func() {
			err := magic.ObtainCertSync(ctx, "example.com")
			for n := 0; n < 12 && err == nil; n++ {
				err = magic.RenewCertSync(ctx, "example.com", true)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	copies.Wait()
	if n := a.issued.Load(); n != 25 || a.met.Load() {
		t.Errorf("%d certificates were issued, want one and 24 renewals; two at the same time: %v", n, a.met.Load())
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
