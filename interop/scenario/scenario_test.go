//go:build unix

package scenario_test

import (
	"os"
	"testing"

	"github.com/redlatch/redlatch/interop/foreign"
	"github.com/redlatch/redlatch/interop/scenario"
)

// TestMain lets the test's own program be the driver of a foreign client.
func TestMain(m *testing.M) {
	foreign.Become(append(foreign.InProcess(), doctored()...)...)
	os.Exit(m.Run())
}

func log(t *testing.T, row *scenario.Row) {
	for _, x := range scenario.All() {
		t.Logf("%-16s %-8s %s", x.Name, row.Cells[x.Name].Verdict, row.Cells[x.Name].Text)
	}
}

// TestForeignClientsAndRedlatchExcludeEachOther plays every scenario with the
// clients that need nothing but this program. Where a client is known to break
// a rule, it must be seen to; redlatch breaks none.
func TestForeignClientsAndRedlatchExcludeEachOther(t *testing.T) {
	t.Parallel()
	for _, c := range foreign.InProcess() {
		for _, nodes := range []int{1, 5} {
			switch {
			case nodes == 5 && !c.Five:
				continue
			case c.Source == "replay" && c.Five && (nodes == 1) != c.Slow:
				continue // make interop plays them on both
			}
			t.Run(c.Name+"/"+map[int]string{1: "one", 5: "five"}[nodes], func(t *testing.T) {
				t.Parallel()
				row := scenario.Play(t, c, nodes, nil)
				for _, fault := range row.Unexpected() {
					t.Error(fault)
				}
				log(t, row)
			})
		}
	}
}
