//go:build unix

package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// changeBounds marks the same servers with other cluster parameters.
func changeBounds(t testing.TB, opts redlatch.Options, addresses []string) *redlatch.Client {
	t.Helper()
	c := laterClient(t, opts, addresses...)
	if states, err := admin.New(c).Init(context.Background(), &admin.InitOptions{Former: open(t, addresses...)}); err != nil {
		t.Fatal(err, states)
	}
	return c
}

// TestRestartDoesNotCutShortTheQuarantineOfAChange restarts servers that are
// quarantined by the former cluster parameters, which are longer than those
// they are marked with.
func TestRestartDoesNotCutShortTheQuarantineOfAChange(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	addresses := servertest.Addresses(servers)
	long := redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: time.Minute}}
	must(t, cycle(newClient(t, open(t, addresses...), long)))
	c := changeBounds(t, quick, addresses)
	trustedFrom := func(s *servertest.Server) string {
		return strings.Fields(s.Do("GET", "redlatch:1:marker"))[8]
	}
	for name, ask := range map[string]func() error{
		"when it is asked for a lock": func() error {
			_, err := c.TryLock(context.Background(), "job", nil)
			return err
		},
		"when it is marked": func() error {
			_, err := admin.New(c).Init(context.Background(), nil)
			return err
		},
	} {
		s := servers[0]
		before, marker := trustedFrom(s), s.Do("GET", "redlatch:1:marker")
		s.Do("SAVE")
		s.Kill()
		s.Restart()
		// The connection that broke with the server may cost one attempt.
		eventually(t, patience, func() error {
			err := ask()
			if s.Do("GET", "redlatch:1:marker") == marker {
				return err
			}
			return nil
		})
		if after := trustedFrom(s); after < before {
			t.Errorf("%s, it is trusted from %s, and before the restart it was from %s", name, after, before)
		}
	}
	// Requests during the quarantine do not shorten it either.
	before := trustedFrom(servers[0])
	_, err := c.TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrQuarantine)
	if after := trustedFrom(servers[0]); after != before {
		t.Errorf("when it was asked again, %s became %s", before, after)
	}
}

func TestLeaseThatIsLongerThanTheNewBoundsEnds(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		servers := servertest.Redis(t, 3)
		addresses := servertest.Addresses(servers)
		long := redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 3 * time.Second}}
		l, err := newClient(t, open(t, addresses...), long).Lock(context.Background(), "job", &redlatch.LockOptions{TTL: 3 * time.Second})
		must(t, err)
		short := long
		short.MaxTTL = time.Second
		changeBounds(t, short, addresses)
		select {
		case <-l.Context().Done():
			wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
		case <-time.After(10 * time.Second):
			t.Errorf("a lease of %v is extended on nodes that sit out no longer than locks of %v live", l.TTL(), short.MaxTTL)
		}
	})
}
