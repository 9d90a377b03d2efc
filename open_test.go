package redlatch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/registry"
	"github.com/redlatch/redlatch/store/memory"
)

func TestOpenTakesAddressesOfEveryRegisteredStore(t *testing.T) {
	names := []string{}
	registry.Register("memo", "example.com/memo", func(address string) (node.Node, error) {
		names = append(names, address)
		return memory.New(&memory.Options{Name: address}), nil
	})
	locks, err := redlatch.Open("memo://a, memo://b,memo://c", &redlatch.Options{Guard: redlatch.GuardOff})
	must(t, err)
	defer locks.Close()
	if got := strings.Join(names, " "); got != "memo://a memo://b memo://c" {
		t.Errorf("opened %s", got)
	}
	lease, err := locks.TryLock(t.Context(), "job", nil)
	must(t, err)
	must(t, lease.Release(t.Context()))
}

func TestOpenRefusesAddressesAndSaysWhatToDo(t *testing.T) {
	open := func(string) (node.Node, error) { return memory.New(nil), nil }
	registry.Register("twice", "example.com/one", open)
	registry.Register("twice", "example.com/two", open)
	for _, c := range []struct{ addresses, want string }{
		{"", "one address or more"},
		{" , ", "one address or more"},
		{"localhost:6379", "an address with a scheme"},
		{"redis://a:6379,b:6379", "addresses[1]"},
		{"redis://:one,two@a:6379", `"(hidden)"`},
		{"redis://a:port", "port"},
		{"memcached://a", "redis://HOST:PORT"},
		{"nats://:secret@a", `"nats"`},
		{"postgres://a/b", `import _ "github.com/redlatch/redlatch/store/postgres"`},
		{"mariadb://a/b", `import _ "github.com/redlatch/redlatch/store/mysql"`},
		{"redis+sentinel://a/m", `import _ "github.com/redlatch/redlatch/store/redis/rueidis"`},
		{"twice://a", "example.com/one and example.com/two"},
		{"redis://a:6379,redis://a:6379", "redis://a:6379"},
		{"redis://a:6379,postgres://:secret@b/c", "address 2 of 2"},
	} {
		locks, err := redlatch.Open(c.addresses, nil)
		if err == nil {
			locks.Close()
		}
		switch {
		case !errors.Is(err, redlatch.ErrConfig):
			t.Errorf("%q: got error %v, want an ErrConfig", c.addresses, err)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: the error is %q, want %q in it", c.addresses, err, c.want)
		case strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "one,two"):
			t.Errorf("%q: the error shows a password: %q", c.addresses, err)
		default:
			t.Log(err)
		}
	}
}
