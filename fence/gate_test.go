package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
)

// TestGateForgetsNothingThatMatters compares a small gate with a model that
// remembers everything: what the model refuses, the gate refuses.
func TestGateForgetsNothingThatMatters(t *testing.T) {
	ctx := context.Background()
	for range 1000 {
		gate, err := fence.NewGate(&fence.GateOptions{MaxNames: 1 + rand.IntN(4)})
		must(t, err)
		model, writers, forgetful := map[string]redlatch.Token{}, map[string]redlatch.Token{}, false
		for range 1 + rand.IntN(60) {
			name, token := string(rune('a'+rand.IntN(8))), redlatch.Token(1+rand.IntN(30))
			check, least, reads := gate.Check, model[name], rand.IntN(2) == 0
			if reads {
				check, least = gate.CheckRead, writers[name]
			}
			err := check(ctx, name, token)
			if token < least && !errors.Is(err, fence.ErrStale) {
				t.Fatalf("%s: %d after %d, reads %t: got %v", name, token, least, reads, err)
			}
			if stale, ok := errors.AsType[*fence.StaleError](err); ok && (stale.Highest <= token || stale.Highest < least) {
				t.Fatalf("%s: %d after %d, reads %t: got %v", name, token, least, reads, err)
			}
			if err == nil {
				model[name] = max(model[name], token)
				if !reads {
					writers[name] = token
				}
			} else if token >= least {
				forgetful = true
			}
		}
		if forgetful && len(model) < 2 {
			t.Fatal("refused a good token although it had forgotten nothing")
		}
	}
}

func TestFullGateKeepsThoseInUse(t *testing.T) {
	ctx := context.Background()
	gate, err := fence.NewGate(&fence.GateOptions{MaxNames: 10})
	must(t, err)
	const leader = redlatch.Token(1)
	for i := range 100 {
		// A lease held for long, beside many that come and go.
		if err := gate.Check(ctx, "leader", leader); err != nil {
			t.Fatalf("after %d others: %v", i, err)
		}
		must(t, gate.Check(ctx, fmt.Sprint("order/", i), redlatch.Token(1000+i)))
	}
	for range 5 { // a stale claim pushes nobody out
		wantStale(t, gate.Check(ctx, "order/95", 1001), 1001, 1095)
	}
	// 91 orders are forgotten, the last with this token.
	const floor = 1000 + 90
	if got := gate.Highest("order/0"); got != floor {
		t.Errorf("the floor is %d, want %d", got, floor)
	}
	wantStale(t, gate.Check(ctx, "never seen", floor-1), floor-1, floor)
	if err := gate.Check(ctx, "order/90", floor); err != nil {
		t.Errorf("the holder of a forgotten resource: %v", err)
	}
}

func TestGateRefusesABadBoundAndShowsANegativeTokenAsSuch(t *testing.T) {
	n := int64(-7)
	if err := newGate(t).Check(t.Context(), "r", redlatch.Token(n)); err == nil || !strings.Contains(err.Error(), "token is -7") {
		t.Errorf("got %v", err)
	}
	if _, err := fence.NewGate(&fence.GateOptions{MaxNames: -1}); !errors.Is(err, redlatch.ErrConfig) {
		t.Errorf("got %v", err)
	}
}
