//go:build unix

package scenario_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/redlatch/redlatch/test/interop/foreign"
	"github.com/redlatch/redlatch/test/interop/scenario"
)

// TestMain lets the test's own program be the driver of a foreign client.
func TestMain(m *testing.M) {
	foreign.Become(append(foreign.InProcess(), doctored()...)...)
	os.Exit(m.Run())
}

// atOnce is how many clients are tested at a time. They mostly wait, so
// -parallel does not decide it.
const atOnce = 12

// report makes each row a test of its own.
func report(t *testing.T, rows []*scenario.Row, check func(t *testing.T, r *scenario.Row)) {
	for _, r := range rows {
		t.Run(fmt.Sprintf("%s on %d", r.Client.Name, r.Nodes), func(t *testing.T) {
			check(t, r)
			for _, x := range scenario.All {
				if c, played := r.Cells[x.Name]; played {
					t.Logf("%-16s %-8s %s", x.Name, c.Verdict, c.Text)
				}
			}
		})
	}
}

// TestForeignClientsAndRedlatchExcludeEachOther plays every scenario with the
// clients that need nothing but this program.
func TestForeignClientsAndRedlatchExcludeEachOther(t *testing.T) {
	t.Parallel()
	var parts []scenario.Part
	for _, c := range foreign.InProcess() {
		parts = append(parts, scenario.Part{Client: c, Nodes: 1})
		if c.Five {
			parts = append(parts, scenario.Part{Client: c, Nodes: 5})
		}
	}
	report(t, scenario.PlayAll(parts, atOnce, nil), func(t *testing.T, r *scenario.Row) {
		for _, fault := range r.Unexpected() {
			t.Error(fault)
		}
	})
}
