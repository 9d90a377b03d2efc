//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestNodeTimeoutIsHowLongASilentNodeIsWaitedFor compares two limits on one frozen
// server, in the same moment on the same machine.
func TestNodeTimeoutIsHowLongASilentNodeIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	server.Freeze()
	defer server.Thaw()
	took := func(limit string) time.Duration {
		start := time.Now()
		if code, _, stderr := command(t, "show", "--nodes", server.URL(), "--node-timeout", limit, "job"); code != exitNoQuorum {
			t.Errorf("a frozen server: exit %d, %s", code, stderr)
		}
		return time.Since(start)
	}
	if short, long := took("100ms"), took("4s"); long-short < 2*time.Second {
		t.Errorf("with a limit of 100ms it took %v, and with one of 4s %v", short, long)
	}
	for _, bad := range []string{"0", "-1s", "soon"} {
		if code, _, stderr := command(t, "show", "--nodes", server.URL(), "--node-timeout", bad, "job"); code != exitUsage || !strings.Contains(stderr, "must be longer than 0s: a duration such as") {
			t.Errorf("%s: exit %d, %s", bad, code, stderr)
		}
	}
}
