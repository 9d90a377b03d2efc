package worker

import "testing"

func TestOneOfTenRequestsIsAWriters(t *testing.T) {
	t.Parallel()
	c := Config{WriteEvery: 10}
	writes := 0
	for n := range 1000 {
		l, write := c.lock("a", 3, n)
		if write == l.Shared {
			t.Fatalf("request %d is a writer's: %v, and shared: %v", n, write, l.Shared)
		}
		if write {
			writes++
		}
	}
	if _, write := c.lock("a", 7, 3); writes != 100 || !write {
		t.Fatalf("%d of 1000", writes)
	}
	if l, write := (Config{Slots: 3}).lock("a", 0, 0); write || l.Shared || l.Slots != 3 {
		t.Fatalf("a slot is neither a writer's nor a reader's: %+v", l)
	}
	if l, write := (Config{WriteEvery: 1}).lock("a", 5, 8); !write || l.Shared {
		t.Fatalf("of an exclusive lock every request is a writer's: %+v", l)
	}
}
