//go:build unix

package redsync_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/redsync"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

var must = check.Must

func mustOK(t testing.TB) func(ok bool, err error) {
	return func(ok bool, err error) {
		t.Helper()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
}

// open returns three servers, and a Redsync on them.
func open(t testing.TB) ([]*servertest.Server, *redsync.Redsync) {
	servers := servertest.Redis(t, 3)
	return servers, redsync.New(goredisPools(t, servers)...)
}

// wantTaken checks for an error that names the nodes on which a lock is held.
func wantTaken(t testing.TB, err error) *redsync.ErrTaken {
	t.Helper()
	var taken *redsync.ErrTaken
	if !errors.As(err, &taken) || len(taken.Nodes) < 2 {
		t.Fatalf("got %v, want an ErrTaken with at least two nodes", err)
	}
	return taken
}

func TestLockEndsAtItsExpiryUnlessItIsExtended(t *testing.T) {
	t.Parallel()
	servers, rs := open(t)
	m := rs.NewMutex("a", redsync.WithExpiry(700*time.Millisecond))
	if m.Value() != "" || !m.Until().IsZero() || m.Lease() != nil {
		t.Errorf("before Lock it has %q, %v, %v", m.Value(), m.Until(), m.Lease())
	}
	before := time.Now()
	must(t, m.Lock())
	if until := m.Until(); until.Before(before) || until.After(time.Now().Add(700*time.Millisecond)) {
		t.Errorf("until is %v after the lock", until.Sub(before))
	}
	if m.Lease().Token() == 0 {
		t.Error("the lease has no token")
	}
	long := rs.NewMutex("b", redsync.WithExpiry(time.Minute))
	must(t, long.Lock())
	for _, s := range servers {
		poll.Until(t, "the value is on every server", func() bool { return s.Do("GET", "b") == long.Value() })
	}
	poll.Until(t, "the key is gone from every server", func() bool {
		return servers[0].Do("EXISTS", "a")+servers[1].Do("EXISTS", "a")+servers[2].Do("EXISTS", "a") == "000"
	})
	if err := m.Lease().Err(); !errors.Is(err, redlatch.ErrLost) {
		t.Errorf("the lease ended with %v", err)
	}
	ok, err := m.Extend()
	if wantTaken(t, err); ok || !errors.Is(err, redsync.ErrExtendFailed) {
		t.Errorf("extending a lock that has expired: %v, %v", ok, err)
	}
	if ok, err := m.Unlock(); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
		t.Errorf("unlocking a lock that has expired: %v, %v", ok, err)
	}
	if ok, _ := m.Valid(); ok {
		t.Error("it is valid")
	}
}

func TestErrorsAreThoseOfRedsync(t *testing.T) {
	t.Parallel()
	servers, rs := open(t)
	holder, other := rs.NewMutex("a"), rs.NewMutex("a", redsync.WithTries(3), redsync.WithRetryDelay(time.Millisecond))
	if ok, err := holder.Unlock(); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
		t.Errorf("unlocking what is not locked: %v, %v", ok, err)
	}
	if ok, err := holder.Extend(); ok || !errors.Is(err, redsync.ErrExtendFailed) {
		t.Errorf("extending what is not locked: %v, %v", ok, err)
	}
	must(t, holder.Lock())
	for _, lock := range []func() error{other.Lock, other.TryLock} {
		var held *redlatch.HeldError
		err := lock()
		if taken, ok := err.(*redsync.ErrTaken); !ok || !errors.As(taken, &held) || held.Holders[0].Owner != holder.Lease().Owner() {
			t.Errorf("the error is %v, want an ErrTaken that names %s", err, holder.Lease().Owner())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := rs.NewMutex("a").LockContext(ctx); err != redsync.ErrFailed {
		t.Errorf("after the end of the context the error is %v", err)
	}
	for _, s := range servers[:2] {
		s.Do("SET", "a", "taken away", "PX", "60000")
	}
	_, err := holder.Extend()
	wantTaken(t, err)
	if ok, err := rs.NewMutex("a", redsync.WithValue(holder.Value())).Unlock(); ok || !errors.Is(err, redlatch.ErrLost) {
		t.Errorf("unlocking what is another's: %v, %v", ok, err)
	}
	if ok, err := holder.Valid(); ok {
		t.Error("valid where another has the lock")
	} else {
		wantTaken(t, err)
	}
	free := rs.NewMutex("b")
	must(t, free.Lock())
	mustOK(t)(free.Unlock())
	if ok, err := free.Unlock(); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
		t.Errorf("unlocking a second time: %v, %v", ok, err)
	}
	servers[0].Kill()
	servers[1].Kill()
	servers[2].Do("SET", "c", "another's", "PX", "60000") // one is no majority: nobody knows whether it is taken
	var down *redsync.RedisError
	if err := rs.NewMutex("c", redsync.WithTries(2), redsync.WithRetryDelay(time.Millisecond)).Lock(); !errors.As(err, &down) || down.Node > 1 {
		t.Errorf("without a majority of servers: %v", err)
	}
	if err := rs.NewMutex("c", redsync.WithTries(0)).Lock(); err != redsync.ErrFailed {
		t.Errorf("without a try: %v", err)
	}
}

// TestEveryOptionWorksOrIsRefused has each option of redsync.
func TestEveryOptionWorksOrIsRefused(t *testing.T) {
	t.Parallel()
	_, rs := open(t)
	var delays []int
	drift := redsync.OptionFunc(func(m *redsync.Mutex) {
		redsync.WithExpiry(10 * time.Second).Apply(m)
		redsync.WithDriftFactor(0.5).Apply(m)
	})
	for name, c := range map[string]struct {
		option  redsync.Option
		refused string // what the error says; empty if the option works
	}{
		"expiry":              {redsync.WithExpiry(time.Hour), ""},
		"no expiry":           {redsync.WithExpiry(0), "WithExpiry is 0s"},
		"negative expiry":     {redsync.WithExpiry(-1), "WithExpiry is -1ns"},
		"expiry of a year":    {redsync.WithExpiry(365 * 24 * time.Hour), "WithExpiry"},
		"tries":               {redsync.WithTries(1), ""},
		"tries without end":   {redsync.WithTries(math.MaxInt), ""},
		"delay":               {redsync.WithRetryDelay(time.Millisecond), ""},
		"no delay":            {redsync.WithRetryDelay(0), ""},
		"delay function":      {redsync.WithRetryDelayFunc(func(try int) time.Duration { delays = append(delays, try); return time.Millisecond }), ""},
		"drift":               {drift, ""},
		"no drift":            {redsync.WithDriftFactor(0), ""},
		"too much drift":      {redsync.WithDriftFactor(1), "WithDriftFactor is 1"},
		"drift that is none":  {redsync.WithDriftFactor(math.NaN()), "WithDriftFactor is NaN"},
		"timeout":             {redsync.WithTimeoutFactor(0.5), ""},
		"no timeout":          {redsync.WithTimeoutFactor(0), "WithTimeoutFactor is 0"},
		"too long a timeout":  {redsync.WithTimeoutFactor(100), "WithTimeoutFactor is 100"},
		"value function":      {redsync.WithGenValueFunc(func() (string, error) { return "x", nil }), "WithGenValueFunc"},
		"fail fast":           {redsync.WithFailFast(true), ""},
		"shuffled pools":      {redsync.WithShufflePools(true), ""},
		"SetNX":               {redsync.WithSetNXOnExtend(), ""},
		"option of a program": {redsync.OptionFunc(func(*redsync.Mutex) {}), ""},
	} {
		m := rs.NewMutex(name, c.option)
		if c.refused != "" {
			_, err1 := m.Unlock()
			_, err2 := m.Extend()
			for _, err := range []error{m.Lock(), m.TryLock(), err1, err2} {
				if !errors.Is(err, redlatch.ErrConfig) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%s: the error is %v, want one with %q", name, err, c.refused)
				}
			}
			continue
		}
		must(t, m.Lock())
		if left := time.Until(m.Until()); name == "drift" && left > 5100*time.Millisecond {
			t.Errorf("%v are left of 10 s with a drift factor of 0.5", left)
		}
		mustOK(t)(m.Extend())
		mustOK(t)(m.Valid())
		mustOK(t)(m.Unlock())
	}
	if len(delays) < 30 || delays[1] != 1 {
		t.Errorf("the delay function was called for %v", delays)
	}
	if !errors.Is(rs.NewMutex("").Lock(), redlatch.ErrConfig) {
		t.Error("a name may be empty")
	}
}

// TestLockWaitsForItsTriesAndDelays lets a Lock wait for a lock that is freed.
func TestLockWaitsForItsTriesAndDelays(t *testing.T) {
	t.Parallel()
	_, rs := open(t)
	holder := rs.NewMutex("a", redsync.WithExpiry(time.Minute))
	must(t, holder.Lock())
	start := time.Now()
	wantTaken(t, rs.NewMutex("a", redsync.WithTries(5), redsync.WithRetryDelay(100*time.Millisecond)).Lock())
	if waited := time.Since(start); waited < 400*time.Millisecond {
		t.Errorf("five tries 100 ms apart took %v", waited)
	}
	got := make(chan error)
	go func() { got <- rs.NewMutex("a", redsync.WithTries(1000), redsync.WithRetryDelay(time.Second)).Lock() }()
	time.Sleep(100 * time.Millisecond)
	mustOK(t)(holder.Unlock())
	must(t, <-got)
}

func TestLockIsExtendedAndUnlockedByItsValue(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	pools := goredisPools(t, servers)
	m := redsync.New(pools...).NewMutex("a", redsync.WithExpiry(10*time.Second))
	must(t, m.Lock())
	elsewhere := redsync.New(pools...).NewMutex("a", redsync.WithExpiry(20*time.Second), redsync.WithValue(m.Value()))
	if elsewhere.Value() != m.Value() {
		t.Errorf("the value is %q, want %q", elsewhere.Value(), m.Value())
	}
	mustOK(t)(elsewhere.Valid())
	mustOK(t)(elsewhere.Extend())
	if left := time.Until(elsewhere.Until()); left < 10*time.Second {
		t.Errorf("%v are left after the extension by 20 s", left)
	}
	mustOK(t)(elsewhere.Unlock())
	if got := servers[0].Do("EXISTS", "a") + servers[1].Do("EXISTS", "a") + servers[2].Do("EXISTS", "a"); got != "000" {
		t.Errorf("after Unlock the key is on the servers %s", got)
	}
	if ok, err := elsewhere.Extend(); ok || !errors.Is(err, redsync.ErrExtendFailed) {
		t.Errorf("extending what was unlocked: %v, %v", ok, err)
	}
	foreign := redsync.New(pools...).NewMutex("a", redsync.WithValue("abc="))
	if _, err := foreign.Unlock(); !errors.Is(err, redlatch.ErrConfig) || !strings.Contains(err.Error(), "WithValue") {
		t.Errorf("unlocking by a foreign value: %v", err)
	}
	if _, err := foreign.Extend(); !errors.Is(err, redlatch.ErrConfig) || !strings.Contains(err.Error(), "WithValue") {
		t.Errorf("extending by a foreign value: %v", err)
	}
}

func TestExtendAcquiresWhatIsFreeIfItMay(t *testing.T) {
	t.Parallel()
	servers, rs := open(t)
	m := rs.NewMutex("a", redsync.WithSetNXOnExtend())
	must(t, m.Lock())
	value, token := m.Value(), m.Lease().Token()
	for _, s := range servers {
		s.Do("DEL", "a")
	}
	mustOK(t)(m.Extend())
	if m.Value() == value || m.Lease().Token() <= token {
		t.Errorf("it is the same lock: %q, %v", m.Value(), m.Lease().Token())
	}
	mustOK(t)(m.Valid())
}

// TestUnlockWaitsForAllServersUnlessItIsToFailFast has a slow link to one of
// three servers.
func TestUnlockWaitsForAllServersUnlessItIsToFailFast(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	slow := servertest.NewProxy(t, servers[2])
	pools := append(goredisPools(t, servers[:2]), goredisPool(t, slow.Addr()))
	stall.Retry(t, func(t testing.TB) {
		for fast, left := range map[bool]string{false: "0", true: "1"} {
			slow.Delay(0)
			for _, s := range servers {
				s.Do("DEL", "a") // left by a try that came too late to tell
			}
			// A server has 2 s to answer.
			m := redsync.New(pools...).NewMutex("a", redsync.WithExpiry(20*time.Second), redsync.WithFailFast(fast))
			must(t, m.Lock())
			poll.Until(t, "all servers have the lock", func() bool { return servers[2].Do("GET", "a") == m.Value() })
			servers[2].Do("PEXPIRE", "a", "10000")
			began := time.Now()
			slow.Delay(500 * time.Millisecond)
			mustOK(t)(m.Extend())
			if left, err := strconv.Atoi(servers[2].Do("PTTL", "a")); err != nil || left > 10000 == fast {
				stall.Busy(t, 20*time.Millisecond, began)
				t.Errorf("with fail fast %v, the slow server has the lock for %d ms after Extend", fast, left)
			}
			mustOK(t)(m.Unlock())
			if got := servers[2].Do("EXISTS", "a"); got != left {
				stall.Busy(t, 20*time.Millisecond, began)
				t.Errorf("with fail fast %v, the slow server has the lock after Unlock: %s", fast, got)
			}
			poll.Until(t, "no server has the lock", func() bool { return servers[2].Do("EXISTS", "a") == "0" })
		}
	})
}

func TestBadPoolsAreAnErrorOfLock(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	one := goredisPool(t, server.Addr())
	for what, rs := range map[string]*redsync.Redsync{
		"no pools":           redsync.New(),
		"a nil pool":         redsync.New(one, nil),
		"one server twice":   redsync.New(one, goredisPool(t, server.Addr())),
		"a guard, no name":   redsync.NewWithOptions(nil, one),
		"no address":         redsync.Open(nil),
		"an address of none": redsync.Open(nil, "http://x"),
	} {
		if err := rs.NewMutex("a").Lock(); !errors.Is(err, redlatch.ErrConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestOptionsOfTheClientAreUsed(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	rs := redsync.NewWithOptions(&redlatch.Options{Prefix: "locks/", Guard: redlatch.GuardOn, Cluster: redlatch.Cluster{Membership: "three"}, AssumeFresh: true, NodeTimeout: 10 * time.Second},
		goredisPools(t, servers)...)
	m := rs.NewMutex("a")
	must(t, m.Lock())
	poll.Until(t, "the key has the prefix", func() bool { return servers[0].Do("GET", "locks/a") == m.Value() })
	mustOK(t)(m.Valid())
	mustOK(t)(m.Extend())
	mustOK(t)(rs.NewMutex("a", redsync.WithValue(m.Value())).Unlock())
	must(t, rs.Close())
	if err := rs.NewMutex("a").Lock(); !errors.Is(err, redlatch.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAddressesDoWithoutPools(t *testing.T) {
	t.Parallel()
	rs := redsync.Open(&redlatch.Options{AssumeFresh: true, NodeTimeout: 10 * time.Second}, servertest.Addresses(servertest.Redis(t, 3))...)
	defer rs.Close()
	m := rs.NewMutex("a")
	must(t, m.Lock())
	wantTaken(t, rs.NewMutex("a").TryLock())
	mustOK(t)(m.Extend())
	mustOK(t)(m.Valid())
	mustOK(t)(m.Unlock())
	if err := rs.NewMutex("a", redsync.WithExpiry(time.Hour)).Lock(); !errors.Is(err, redlatch.ErrConfig) {
		t.Errorf("an expiry above MaxTTL: %v", err)
	}
}

// TestLockOutlivesItsMutex drops a Redsync and its mutex: the lock stays held,
// and after its expiry the client is closed.
func TestLockOutlivesItsMutex(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	pool := goredisPool(t, server.Addr())
	closed, value, until := func() (func() bool, string, time.Time) {
		rs := redsync.New([]redis.Pool{pool}...)
		m := rs.NewMutex("a", redsync.WithExpiry(1500*time.Millisecond))
		must(t, m.Lock())
		return redsync.IsClosed(rs), m.Value(), m.Until()
	}()
	poll.Until(t, "the client is closed", func() bool {
		runtime.GC()
		over, got := closed(), server.Do("GET", "a")
		if time.Now().Before(until) && (over || got != value) {
			t.Fatalf("before its expiry the lock is %q, want %q; closed: %v", got, value, over)
		}
		return over
	})
}
