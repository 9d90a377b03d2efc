package explore

import (
	"runtime/debug"

	"fmt"

	"os"
	"strconv"
	"strings"

	"context"
	"testing"
)

func TestTry(t *testing.T) {
	limit := 40_000
	if n, err := strconv.Atoi(os.Getenv("LIMIT")); err == nil {
		limit = n
	}
	for _, in := range Instances() {
		if !strings.Contains(in.Name, os.Getenv("ONLY")) {
			continue
		}
		if in.States == 0 {
			in.States = limit
		}
		r := Search(context.Background(), in)
		fmt.Printf("%s: %d states, %d steps, depth %d, complete %v, %.1f s, %v, %+v\n%s\n", in.Name, r.States, r.Steps, r.Depth, r.Complete, r.Took.Seconds(), r.Bad, r.Seen, r.Story)
	}
}

// TestMain has memory be collected less often than by default: states are kept,
// and little of what is allocated is garbage.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
