package observe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/memory"
)

func TestNamePattern(t *testing.T) {
	for name, want := range map[string]string{
		"orders/42":                "orders/*",
		"nightly":                  "nightly",
		"a:b.c d/e":                "a:b.c d/e",
		"user-42":                  "*",
		"jobs/2026-11-16/import":   "jobs/*/import",
		strings.Repeat("x", 41):    "*",
		strings.Repeat("x", 40):    strings.Repeat("x", 40),
		"a/\u202eb\u200f":          "a/b",
		"<script>":                 "<script>",
		"bestellungen/Größe":       "bestellungen/Größe",
		"orders/٤٢":                "orders/*",
		"":                         "",
		"tenant/7/":                "tenant/*/",
		"f47ac10b-58cc-4372-a567-": "*",
	} {
		if got := observe.NamePattern(name); got != want {
			t.Errorf("NamePattern(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestOutcome(t *testing.T) {
	c := locktest.NewClient(t, memory.Nodes(1), redlatch.Options{})
	locktest.MustLock(t, c, "job", redlatch.LockOptions{})
	_, held := c.TryLock(t.Context(), "job", nil)
	_, bad := c.TryLock(t.Context(), "", nil)
	for want, err := range map[string]error{
		"ok": nil, "held": held, "config": bad, "other": errors.New("x"),
		"no_quorum": &redlatch.QuorumError{}, "closed": redlatch.ErrClosed,
		"released":     fmt.Errorf("%w: %w", redlatch.ErrReleased, redlatch.ErrClosed),
		"max_hold":     &redlatch.LostError{Err: redlatch.ErrMaxHold},
		"taken":        &redlatch.LostError{Err: &redlatch.QuorumError{}},
		"not_extended": &redlatch.LostError{},
		"canceled":     fmt.Errorf("%w while waiting", context.Canceled),
		"deadline":     context.DeadlineExceeded,
		"changing":     redlatch.ErrChanging,
	} {
		if got := observe.Outcome(err); got != want {
			t.Errorf("Outcome(%v) = %q, want %q", err, got, want)
		}
	}
}
