package main

import (
	"testing"
	"time"
)

func TestGraceLeavesTimeForExtensions(t *testing.T) {
	for _, c := range []struct{ ttl, maxHold, want time.Duration }{
		{10 * time.Second, 24 * time.Hour, 2 * time.Second},
		{30 * time.Second, 24 * time.Hour, 2 * time.Second},
		{time.Second, 24 * time.Hour, 200 * time.Millisecond},
		{10 * time.Second, time.Second, 200 * time.Millisecond},
	} {
		f := &runFlags{lockFlags: lockFlags{ttl: c.ttl}, maxHold: c.maxHold}
		if err := f.check(); err != nil || f.graceFor(c.ttl) != c.want {
			t.Errorf("grace for a TTL of %v and a hold of %v: %v, %v, want %v", c.ttl, c.maxHold, f.graceFor(c.ttl), err, c.want)
		}
	}
}
