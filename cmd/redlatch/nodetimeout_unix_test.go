//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/redistest"
)

// TestNodeTimeoutIsHowLongASilentNodeIsWaitedFor has a frozen server asked with a
// limit that is longer than any default.
func TestNodeTimeoutIsHowLongASilentNodeIsWaitedFor(t *testing.T) {
	server := redistest.Start(t, 1)[0]
	server.Freeze()
	defer server.Thaw()
	took := func(limit string) time.Duration {
		start := time.Now()
		if code, _, stderr := command(t, "show", "--nodes", server.URL(), "--node-timeout", limit, "job"); code != exitNoQuorum {
			t.Errorf("a frozen server: exit %d, %s", code, stderr)
		}
		return time.Since(start)
	}
	if long := took("4s"); long < 4*time.Second {
		t.Errorf("with a limit of 4s it took %v", long)
	}
	for _, bad := range []string{"0", "-1s", "soon"} {
		if code, _, stderr := command(t, "show", "--nodes", server.URL(), "--node-timeout", bad, "job"); code != exitUsage || !strings.Contains(stderr, "must be a duration longer than 0s") {
			t.Errorf("%s: exit %d, %s", bad, code, stderr)
		}
	}
}
