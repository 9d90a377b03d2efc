package system_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

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

// TestWakesAreInTurn passes the token around among three.
func TestWakesAreInTurn(t *testing.T) {
	t.Parallel()
	g := startRedis(t, 5)
	s, err := system.Find("floor-wakes")
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	var all sync.WaitGroup
	for i := range 3 {
		l, err := s.Open(t.Context(), g.Addresses())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all.Go(func() {
			for range 20 {
				held, err := l.Lock(t.Context(), "token")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i) // by one at a time
				time.Sleep(time.Millisecond)
				if err := held.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	counts := map[int]int{}
	for _, i := range order {
		counts[i]++
	}
	if len(order) != 60 || counts[0] != 20 || counts[1] != 20 || counts[2] != 20 {
		t.Errorf("the token went %v", order)
	}
}
