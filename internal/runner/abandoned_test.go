package runner

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestAbandonedClaimsAreForgottenAfterABurst has a thousand callers give up, and another
// one later.
func TestAbandonedClaimsAreForgottenAfterABurst(t *testing.T) {
	var d abandonedClaims
	add := func(value string, now time.Duration) {
		d.add(leftover{req: node.Request{Value: value}, until: now + time.Second}, now)
	}
	for i := range 1000 {
		add(fmt.Sprint(i), time.Millisecond)
	}
	add("later", time.Minute)
	if _, known := d.reqs["later"]; !known || len(d.reqs) != 1 {
		t.Errorf("a minute later %d claims are remembered, want the last one", len(d.reqs))
	}
}
