//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestServersThatKeepAnythingOfLocksAreNotFresh removes the marker and leaves
// another key.
func TestServersThatKeepAnythingOfLocksAreNotFresh(t *testing.T) {
	t.Parallel()
	ours := strings.Repeat("0a", 16) + ":host/1/web"
	for name, left := range map[string][]string{
		"a fence":                {"SET", "redlatch:1:fence:{job}", "00000000000000000007", "PX", "60000"},
		"a queue":                {"ZADD", "redlatch:1:queue:{job}", "1", ours},
		"a lock without a token": {"SET", "job", ours, "PX", "60000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := servertest.Redis(t, 3)
			addresses := servertest.Addresses(servers)
			servers[1].Do(left...)
			c := laterClient(t, quick, addresses...)
			_, err := admin.New(c).Init(context.Background(), &admin.InitOptions{AssumeFresh: true})
			wantErr(t, err, admin.ErrNotFresh)
			wantText(t, err, servers[1].Addr(), left[1])
			for _, s := range servers {
				if marker := s.Do("GET", "redlatch:1:marker"); marker != "" {
					t.Errorf("%s is marked %q, though it was refused", s.Addr(), marker)
				}
			}
			// Nor does the option help: with it the first lock waits instead.
			_, err = newClient(t, open(t, addresses...), quick).TryLock(context.Background(), "job2", nil)
			wantErr(t, err, redlatch.ErrQuarantine)
		})
	}
}

func TestServersWithOtherKeysAreFresh(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	servers[0].Do("SET", "job", "another client's", "PX", "60000")
	servers[0].Do("SET", "digest", strings.Repeat("0a", 16))
	servers[0].Do("HSET", "redlatch", "a", "b")
	for i := range 2000 { // several steps
		servers[1].Do("SET", fmt.Sprint("key ", i), "value")
	}
	c := laterClient(t, quick, servertest.Addresses(servers)...)
	if states, err := admin.New(c).Init(context.Background(), &admin.InitOptions{AssumeFresh: true}); err != nil {
		t.Error(err, states)
	}
}

func TestEvidenceIsFoundAmongManyKeys(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		servers := servertest.Redis(t, 3)
		servers[2].Do("EVAL", "for i = 1, 5000 do redis.call('SET', 'key ' .. i, 'value') end", "0")
		servers[2].Do("SET", "redlatch:1:fence:{job}", "00000000000000000007")
		c := laterClient(t, quick, servertest.Addresses(servers)...)
		_, err := admin.New(c).Init(context.Background(), &admin.InitOptions{AssumeFresh: true})
		wantErr(t, err, admin.ErrNotFresh)
	})
}

func TestServersThatCannotBeSearchedAreNotFresh(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	var addresses []string
	for _, s := range servers {
		s.Do(documentedUser(t)...)
		addresses = append(addresses, asUser(s, "locks:PASSWORD"))
	}
	_, err := admin.New(laterClient(t, quick, addresses...)).Init(context.Background(), &admin.InitOptions{AssumeFresh: true})
	wantErr(t, err, admin.ErrNotFresh)
	for _, s := range servers {
		s.Do("ACL", "SETUSER", "locks", "+scan", "+getrange")
	}
	if _, err := admin.New(laterClient(t, quick, addresses...)).Init(context.Background(), &admin.InitOptions{AssumeFresh: true}); err != nil {
		t.Errorf("with the documented rights: %v", err)
	}
}

// TestClientThatSawServersInServiceDoesNotTakeThemForNew leaves the client
// itself as the only witness of what the servers had.
func TestClientThatSawServersInServiceDoesNotTakeThemForNew(t *testing.T) {
	t.Parallel()
	for name, see := range map[string]func(t *testing.T, c *redlatch.Client, handle string){
		"by taking a lock": func(t *testing.T, c *redlatch.Client, _ string) {
			if _, err := c.TryLock(context.Background(), "other", &redlatch.LockOptions{NoKeepAlive: true}); err != nil {
				t.Fatal(err)
			}
		},
		"by being refused one": func(t *testing.T, c *redlatch.Client, _ string) {
			_, err := c.TryLock(context.Background(), "job", nil)
			wantErr(t, err, redlatch.ErrHeld)
		},
		"by taking up a handle": func(t *testing.T, c *redlatch.Client, handle string) {
			if _, err := c.Attach(context.Background(), handle); err != nil {
				t.Fatal(err)
			}
		},
		"by looking": func(t *testing.T, c *redlatch.Client, _ string) {
			if _, err := admin.New(c).Init(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := servertest.Redis(t, 3)
			addresses := servertest.Addresses(servers)
			l, err := newClient(t, open(t, addresses...), quick).Lock(context.Background(), "job", &redlatch.LockOptions{NoKeepAlive: true})
			must(t, err)
			opts := quick
			opts.AssumeFresh = name == "by looking" // before its first lock
			c := laterClient(t, opts, addresses...)
			see(t, c, l.Handle())
			for _, s := range servers {
				s.Do("FLUSHALL")
			}
			if opts.AssumeFresh {
				_, err = c.TryLock(context.Background(), "job", nil)
				wantErr(t, err, redlatch.ErrQuarantine)
			}
			_, err = admin.New(c).Init(context.Background(), &admin.InitOptions{AssumeFresh: true})
			wantErr(t, err, admin.ErrNotFresh)
		})
	}
}

func TestInitWaitsOutTheQuarantine(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	addresses := servertest.Addresses(servers)
	l := hold(t, newClient(t, open(t, addresses...), quick), servers...)
	for _, s := range servers {
		s.Do("FLUSHALL")
	}
	c := laterClient(t, quick, addresses...)
	var least time.Duration
	states, err := admin.New(c).Init(context.Background(), &admin.InitOptions{Wait: true, Progress: func(states []admin.NodeState) {
		for _, s := range states {
			if s.Left > 0 && (least == 0 || s.Left < least) {
				least = s.Left
			}
		}
	}})
	if err != nil {
		t.Fatal(err, states)
	}
	if left := l.Remaining(); left > 0 {
		t.Errorf("it returned while a lock from before is valid for %v", left)
	}
	for _, s := range states {
		if !s.Trusted {
			t.Errorf("%s: %+v", s.Node, s)
		}
	}
	if least == 0 || least > 2*time.Second {
		t.Errorf("the progress went down to %v at the most", least)
	}
	must(t, cycle(c))
}
