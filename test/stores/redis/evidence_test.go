//go:build unix

package redis_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestServersThatKeepAnythingOfLocksAreNotFresh has no marker, and one key of ours among
// many that are not.
func TestServersThatKeepAnythingOfLocksAreNotFresh(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	addresses := servertest.Addresses(servers)
	servers[0].Do("SET", "job", "another client's", "PX", "60000")
	servers[0].Do("SET", "digest", strings.Repeat("0a", 16))
	servers[0].Do("HSET", "redlatch", "a", "b")
	servers[1].Do("EVAL", "for i = 1, 5000 do redis.call('SET', 'key ' .. i, 'value') end", "0") // several steps
	assume := func() error {
		_, err := admin.New(laterClient(t, quick, addresses...)).Init(context.Background(), &admin.InitOptions{AssumeFresh: true})
		return err
	}
	ours := strings.Repeat("0a", 16) + ":host/1/web"
	for _, left := range [][]string{
		{"SET", "redlatch:1:fence:{job}", "00000000000000000007", "PX", "60000"},
		{"ZADD", "redlatch:1:queue:{job}", "1", ours},
		{"SET", "job", ours, "PX", "60000"}, // without a token
	} {
		servers[1].Do(left...)
		err := assume()
		wantErr(t, err, admin.ErrNotFresh)
		wantText(t, err, servers[1].Addr(), left[1])
		for _, s := range servers {
			if marker := s.Do("GET", "redlatch:1:marker"); marker != "" {
				t.Errorf("%s is marked %q, though it was refused", s.Addr(), marker)
			}
		}
		servers[1].Do("DEL", left[1])
	}
	must(t, assume())
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
	_, err = admin.New(laterClient(t, quick, addresses...)).Init(context.Background(), &admin.InitOptions{AssumeFresh: true})
	must(t, err) // with the documented rights
}
