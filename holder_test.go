package redlatch_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
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

func TestHeldErrorSaysSinceWhenAndWhatExpiryMeans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{Label: "api"})
		lease := locktest.MustLock(t, hosts[0].Client, "orders/42", redlatch.LockOptions{})
		time.Sleep(34 * time.Second)
		err, _ := held(t, hosts[1].Client, "orders/42")
		since := time.UnixMicro(int64(lease.Token())).Format("15:04:05")
		want := regexp.MustCompile(`^redlatch: "orders/42" is held by ` + regexp.QuoteMeta(lease.Owner()) +
			` since ` + since + ` \(34s ago\); it expires in \d+s unless extended$`)
		if !want.MatchString(err.Error()) {
			t.Errorf("got  %v\nwant %v", err, want)
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
		ctx, cancel := context.WithTimeout(t.Context(), 2300*time.Millisecond)
		defer cancel()
		if _, err := hosts[1].Lock(ctx, "job", nil); err == nil {
			t.Fatal("two hold the lock")
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
		"known":           {node.Reply{Value: value, HolderToken: token(-34 * time.Second)}, "web-3/812/api since 14:02:11 (34s ago)" + expires},
		"for days":        {node.Reply{Value: value, HolderToken: token(-50 * time.Hour)}, "web-3/812/api since 2026-11-13 12:02:45 (50h0m0s ago)" + expires},
		"just now":        {node.Reply{Value: value, HolderToken: token(300 * time.Millisecond)}, "web-3/812/api since 14:02:45 (0s ago)" + expires},
		"in the future":   {node.Reply{Value: value, HolderToken: token(time.Hour)}, "web-3/812/api" + expires},
		"without a token": {node.Reply{Value: value, Fence: token(-time.Minute)}, "web-3/812/api" + expires},
		"another client":  {node.Reply{Value: "plain", HolderToken: token(-time.Minute)}, `another client ("plain")` + expires},
	} {
		c.reply.Status, c.reply.Now, c.reply.Left = node.Held, now, 8*time.Second
		h := redlatch.HoldersOf(node.Result{Reply: c.reply})
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
			h := redlatch.HoldersOf(node.Result{Reply: node.Reply{Status: status, Value: value, Left: time.Second}})[0]
			if status == node.Foreign && value == long {
				want = long // a type is a word; it is quoted only if it is not printable
			}
			if h.Owner != want {
				t.Errorf("%v %q is shown as %s, want %s", status, value, h.Owner, want)
			}
		}
	}
}
