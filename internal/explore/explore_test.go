package explore

import (
	"context"
	"testing"
)

func TestTry(t *testing.T) {
	for _, in := range Instances() {
		if in.States == 0 {
			in.States = 1_000_000
		}
		r := Search(context.Background(), in)
		t.Logf("%s: %d states, %d steps, depth %d, complete %v, %.1f s, %v, %+v\n%s", in.Name, r.States, r.Steps, r.Depth, r.Complete, r.Took.Seconds(), r.Bad, r.Seen, r.Story)
	}
}
