//go:build unix

package redis_test

import (
	"context"
	"strings"
	"testing"

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

// TestServersWithOtherKeysAreFresh finds one key of ours among many that are not, and
// none when that is gone.
func TestServersWithOtherKeysAreFresh(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	servers[0].Do("SET", "job", "another client's", "PX", "60000")
	servers[0].Do("SET", "digest", strings.Repeat("0a", 16))
	servers[0].Do("HSET", "redlatch", "a", "b")
	servers[2].Do("EVAL", "for i = 1, 5000 do redis.call('SET', 'key ' .. i, 'value') end", "0") // several steps
	servers[2].Do("SET", "redlatch:1:fence:{job}", "00000000000000000007")
	operator := admin.New(laterClient(t, quick, servertest.Addresses(servers)...))
	_, err := operator.Init(context.Background(), &admin.InitOptions{AssumeFresh: true})
	wantErr(t, err, admin.ErrNotFresh)
	servers[2].Do("DEL", "redlatch:1:fence:{job}")
	if states, err := operator.Init(context.Background(), &admin.InitOptions{AssumeFresh: true}); err != nil {
		t.Error(err, states)
	}
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
