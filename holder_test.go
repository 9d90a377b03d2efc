package redlatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/holders"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// held asks once. It returns the refusal and its first holder.
func held(t *testing.T, c *redlatch.Client, name string) (*redlatch.HeldError, redlatch.Holder) {
	t.Helper()
	var err *redlatch.HeldError
	if _, got := c.TryLock(t.Context(), name, nil); !errors.As(got, &err) {
		t.Fatalf("got %v, want a HeldError", got)
	}
	return err, err.Holders[0]
}

func TestHeldErrorSaysWhoSinceWhenAndWhatExpiryMeans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{Label: "nightly"})
		lease := locktest.MustLock(t, hosts[0].Client, "orders/42", redlatch.LockOptions{TTL: 8 * time.Second})
		time.Sleep(time.Second)
		err, h := held(t, hosts[1].Client, "orders/42")
		since := time.UnixMicro(int64(lease.Token())).Format("15:04:05")
		want := `redlatch: "orders/42" is held by ` + lease.Owner() + ` since ` + since + ` (1s ago); it expires in 7s unless extended`
		if err.Error() != want {
			t.Errorf("got  %v\nwant %v", err, want)
		}
		if err.Name != "orders/42" || len(err.Holders) != 1 || h.Owner != lease.Owner() || !strings.HasSuffix(h.Owner, "/nightly") ||
			h.Kind != redlatch.KindLease || h.Left != 7*time.Second || h.Token != lease.Token() || h.Nodes < 2 {
			t.Errorf("got holder %+v, want %s for 7s with token %d", h, lease.Owner(), lease.Token())
		}
		hosts[0].Links.Take(t, "plain", "not one of ours", time.Minute)
		if _, h := held(t, hosts[1].Client, "plain"); h.Kind != redlatch.KindPlain {
			t.Errorf("got %v, want a plain holder", h)
		}
	})
}

// A waiter that gives up raises the fence. The holder's token, and the time
// since which it holds the lock, do not change.
func TestAWaiterThatGivesUpLeavesTheHolderItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 3, redlatch.Options{})
		lease := locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{})
		time.Sleep(time.Second)
		ctx := locktest.Within(t, 2300*time.Millisecond)
		if _, err := hosts[1].Lock(ctx, "job", nil); err == nil {
			exclusion.Never(t, "two hold the lock")
		}
		time.Sleep(time.Second)
		_, h := held(t, hosts[2].Client, "job")
		if h.Token != lease.Token() {
			t.Errorf("the holder is said to have the token %d, which is %v above its own", h.Token, time.Duration(h.Token-lease.Token())*time.Microsecond)
		}
		if !strings.Contains(h.String(), "(4.3s ago)") && !strings.Contains(h.String(), "(4s ago)") {
			t.Errorf("the holder is %v, want it to have held for 4.3s", h)
		}
		s, err := admin.New(hosts[2].Client).Show(t.Context(), "job")
		if err != nil || s.Holders[0].Token != lease.Token() {
			t.Errorf("Show says %+v, %v, want the token %d", s.Holders, err, lease.Token())
		}
	})
}

// If the nodes know no time, or an impossible one, the text omits it.
func TestAHolderOfUnknownAgeIsShownWithoutOne(t *testing.T) {
	const value = "00112233445566778899aabbccddeeff:web-3/812/api"
	now := time.Date(2026, 11, 15, 14, 2, 45, 0, time.Local)
	token := func(ahead time.Duration) redlatch.Token { return redlatch.Token(now.Add(ahead).UnixMicro()) }
	const expires = "; it expires in 8s unless extended"
	for name, c := range map[string]struct {
		reply node.Reply
		want  string
	}{
		"known":           {node.Reply{Taken: node.Taken{Value: value, HolderToken: token(-34 * time.Second)}}, "web-3/812/api since 14:02:11 (34s ago)" + expires},
		"for days":        {node.Reply{Taken: node.Taken{Value: value, HolderToken: token(-50 * time.Hour)}}, "web-3/812/api since 2026-11-13 12:02:45 (50h0m0s ago)" + expires},
		"just now":        {node.Reply{Taken: node.Taken{Value: value, HolderToken: token(300 * time.Millisecond)}}, "web-3/812/api since 14:02:45 (0s ago)" + expires},
		"in the future":   {node.Reply{Taken: node.Taken{Value: value, HolderToken: token(time.Hour)}}, "web-3/812/api" + expires},
		"without a token": {node.Reply{Taken: node.Taken{Value: value}, Fence: token(-time.Minute)}, "web-3/812/api" + expires},
		"another client":  {node.Reply{Taken: node.Taken{Value: "plain", HolderToken: token(-time.Minute)}}, `another client ("plain")` + expires},
	} {
		c.reply.Status, c.reply.Now, c.reply.Left = node.Held, now, 8*time.Second
		h := holders.Of[redlatch.Holder](observe.Result{Reply: c.reply})
		if len(h) != 1 || h[0].String() != c.want {
			t.Errorf("%s: %v, want %s", name, h, c.want)
		}
	}
}

// A value that is too long to be shown is marked as cut.
func TestAForeignValueThatIsCutIsMarked(t *testing.T) {
	long := strings.Repeat("x", 64)
	for value, want := range map[string]string{
		long:                            `"` + long + `"`,
		long + "y":                      `"` + long + `"…`,
		strings.Repeat("x", 62) + "日本語": `"` + long[:62] + `"…`,
		strings.Repeat("\x80", 100):     `"` + strings.Repeat(`\x80`, 64) + `"…`,
	} {
		for _, status := range []node.Status{node.Held, node.Foreign} {
			h := holders.Of[redlatch.Holder](observe.Result{Reply: node.Reply{Status: status, Taken: node.Taken{Value: value, Format: value}, Left: time.Second}})[0]
			if status == node.Foreign && value == long {
				want = long // a type is a word; it is quoted only if it is not printable
			}
			if h.Owner != want {
				t.Errorf("%v %q is shown as %s, want %s", status, value, h.Owner, want)
			}
		}
	}
}

func TestWatchReportsWhoLeadsAndEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 3, redlatch.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var got []*redlatch.Holder
		var errs []error
		var wg sync.WaitGroup
		wg.Go(func() {
			for h, err := range hosts[2].Client.Watch(ctx, "leader") {
				mu.Lock()
				got, errs = append(got, h), append(errs, err)
				mu.Unlock()
			}
		})
		var want []redlatch.Token
		for i := range 3 {
			want = append(want, 0)
			time.Sleep(time.Second)
			l := locktest.MustLock(t, hosts[i%2].Client, "leader", redlatch.LockOptions{})
			want = append(want, l.Token())
			time.Sleep(time.Minute)
			must(t, l.Release(t.Context()))
			time.Sleep(time.Second)
		}
		want = append(want, 0)
		cancel()
		wg.Wait()
		var tokens []redlatch.Token
		for i, h := range got {
			var token redlatch.Token
			if h != nil {
				token = h.Token
			}
			tokens = append(tokens, token)
			if errs[i] != nil || h != nil && (h.Token == 0 || h.Owner == "" || h.Since.IsZero()) {
				t.Errorf("report %d is %+v, %v", i, h, errs[i])
			}
		}
		if !slices.Equal(tokens, want) {
			t.Errorf("it reported %d, want %d", tokens, want)
		}
	})
}

// TestWatchReportsReadersThatCameInADifferentOrderOnEachNode has five readers,
// each of which is the first on one of five nodes. So no quorum of nodes names
// the same one first.
func TestWatchReportsReadersThatCameInADifferentOrderOnEachNode(t *testing.T) {
	for what, opts := range map[string]redlatch.LockOptions{"readers": {Shared: true}, "slots": {Slots: 5}} {
		locktest.Run(t, what, func(t *testing.T) {
			const n = 5
			hosts := locktest.NewHosts(t, n, n, redlatch.Options{})
			var wg sync.WaitGroup
			for h, host := range hosts {
				for i, l := range host.Links {
					l.Set(func(l *locktest.Link) { l.Out = time.Duration((i-h+n)%n) * time.Millisecond })
				}
				wg.Go(func() { locktest.MustLock(t, host.Client, "job", opts) })
			}
			wg.Wait()
			time.Sleep(time.Second)
			ctx := locktest.Within(t, time.Minute)
			for h, err := range hosts[0].Watch(ctx, "job") {
				if err != nil || h == nil || h.Holders != n || h.Shared != opts.Shared || h.Slots != opts.Slots {
					t.Errorf("it reports %+v, %v; want one of %d holders", h, err, n)
				}
				return
			}
			t.Error("it reports nothing")
		})
	}
}

func TestWatchReportsAnOutageOnceAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		l := locktest.MustLock(t, c, "leader", redlatch.LockOptions{TTL: 20 * time.Second})
		synctest.Wait() // until every node has the lock
		n := 0
		for h, err := range c.Watch(t.Context(), "leader") {
			n++
			switch n {
			case 1, 3:
				if err != nil || h == nil || h.Token != l.Token() {
					t.Errorf("report %d is %+v, %v", n, h, err)
				}
			case 2:
				if !errors.Is(err, redlatch.ErrNoQuorum) || h == nil || h.Token != l.Token() {
					t.Errorf("report %d is %+v, %v; want the last holder and ErrNoQuorum", n, h, err)
				}
				time.AfterFunc(2*time.Second, func() {
					links[0].Mend()
				})
			}
			if n == 1 {
				links[0].Cut()
				links[1].Cut()
			}
			if n == 3 {
				break
			}
		}
		for _, err := range c.Watch(t.Context(), "") {
			locktest.WantErr(t, err, redlatch.ErrConfig)
		}
	})
}

func TestContendedIsClosedWhenSomebodyWaits(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			hosts := locktest.NewHosts(t, 2, n, redlatch.Options{})
			l := locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{})
			contended := l.Contended()
			if l.Contended() != contended {
				t.Error("the second call returns another channel")
			}
			time.Sleep(10 * time.Second)
			select {
			case <-contended:
				t.Error("it is closed although nobody waits")
			default:
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				next := locktest.MustLock(t, hosts[1].Client, "job", redlatch.LockOptions{})
				idle := next.Contended()
				time.Sleep(time.Second)
				must(t, next.Release(t.Context()))
				select {
				case <-idle:
					t.Error("it is closed although nobody waited")
				default:
				}
			})
			began := time.Now()
			select {
			case <-contended:
			case <-time.After(time.Minute):
			}
			locktest.WantTook(t, began, 0, time.Second)
			must(t, l.Release(t.Context()))
			wg.Wait()
		})
	}
}

// TestContendedDoesNotCountTheHoldersOwnPlace has a holder whose place in a queue a node
// still has, since its request did not arrive there.
func TestContendedDoesNotCountTheHoldersOwnPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{})
		first := locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{})
		synctest.Wait() // the lock is on all nodes
		acquired := make(chan *redlatch.Lease, 1)
		go func() { acquired <- locktest.MustLock(t, hosts[1].Client, "job", redlatch.LockOptions{}) }()
		time.Sleep(time.Second)
		late := hosts[1].Links[2]
		late.Cut()
		must(t, first.Release(t.Context()))
		next := <-acquired
		synctest.Wait() // the release is on all nodes
		late.Mend()
		look, err := late.Look(t.Context(), "job")
		if err != nil || look.Waiting != 1 {
			t.Fatalf("%d wait on the node that was cut off, %v; want 1", look.Waiting, err)
		}
		contended := next.Contended()
		time.Sleep(2 * time.Second)
		select {
		case <-contended:
			t.Error("it is closed although nobody else waits")
		default:
		}
	})
}

func TestWatchBelievesAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		links[0].Take(t, "leader", "stray", time.Minute)
		l := locktest.MustLock(t, c, "leader", redlatch.LockOptions{})
		ctx := locktest.Within(t, 10*time.Second)
		n := 0
		for h, err := range c.Watch(ctx, "leader") {
			n++
			if err != nil || h == nil || h.Token != l.Token() {
				t.Errorf("it reports %+v, %v", h, err)
			}
			// One node that says otherwise, and one that has lost it.
			links[1].Drop("leader")
			links[2].Drop("leader")
			links[1].Take(t, "leader", "stray", time.Minute)
			links[2].Take(t, "leader", "another", time.Minute)
			if n > 1 {
				break
			}
			links[1].Drop("leader")
		}
		if n != 1 {
			t.Errorf("it reported %d times", n)
		}
	})
}
