//go:build unix

package redis_test

import (
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// TestExtensionThatReservesIsNotLostInABatch starts extensions of three names
// together, one of which reserves tokens.
func TestExtensionThatReservesIsNotLostInABatch(t *testing.T) {
	address := servertest.Redis(t, 1)[0].URL()
	var reqs []node.Request
	for _, name := range []string{"one", "two", "three"} {
		reqs = append(reqs, acquisition(name, "holder"))
	}
	together(t, address, reqs...)
	for i := range reqs {
		reqs[i].Op = node.OpExtend
	}
	reqs[1].Token, reqs[1].Reserve = reqs[1].Token+10, 5
	replies, errs := together(t, address, reqs...)
	for i, r := range replies {
		if errs[i] != nil || r.Status != node.Granted || r.Confirmed != (i == 1) {
			t.Errorf("%s: %v, reserved %v, %v", reqs[i].Name, r.Status, r.Confirmed, errs[i])
		}
	}
}
