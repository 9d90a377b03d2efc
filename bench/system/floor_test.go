package system_test

import (
	"fmt"
	"testing"

	"github.com/redlatch/redlatch/bench/system"
	"github.com/redlatch/redlatch/internal/resp"
)

func TestFloorsTakeAndFreeRealLocks(t *testing.T) {
	for key, name := range map[string]string{
		"floor-plain": "mine",
		// This one has a name of its own, from which it learned.
		"floor-scripts": "bench/floor",
	} {
		for _, n := range []int{1, 5} {
			t.Run(fmt.Sprint(key, "/", n), func(t *testing.T) {
				t.Parallel()
				g := startRedis(t, n)
				s, err := system.Find(key)
				if err != nil {
					t.Fatal(err)
				}
				l, err := s.Open(t.Context(), g.Addresses())
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				c, err := resp.Dial("tcp", g.Addresses()[0])
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				value := func() resp.Reply {
					r, err := c.Do("GET", name)
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				values := map[string]bool{}
				for range 5 {
					held, err := l.Lock(t.Context(), name)
					if err != nil {
						t.Fatal(err)
					}
					v := value()
					if v.Nil || values[v.Text] {
						t.Fatalf("the lock has the value %q, after %v", v.Text, values)
					}
					values[v.Text] = true
					if err := held.Release(); err != nil {
						t.Fatal(err)
					}
					if v := value(); !v.Nil {
						t.Fatalf("after the release it has the value %q", v.Text)
					}
				}
				// Somebody else's lock is not taken.
				for _, a := range g.Addresses() {
					other, err := resp.Dial("tcp", a)
					if err != nil {
						t.Fatal(err)
					}
					defer other.Close()
					if _, err := other.Do("SET", name, "another's"); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := l.Lock(t.Context(), name); err == nil {
					t.Fatal("a lock that another has was taken")
				}
			})
		}
	}
}
