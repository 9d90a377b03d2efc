//go:build onerule

package explore

import (
	"os"
	"testing"
)

// TestOneRule is run by the other tests, in a build with changed lines.
func TestOneRule(t *testing.T) {
	name := os.Getenv("REDLATCH_RULE")
	for _, r := range Rules() {
		if r.Name == name {
			missed(t, r)
			return
		}
	}
	t.Fatalf("there is no rule %q", name)
}
