//go:build unix

package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/redistest"
)

// TestMain turns the test binary into one of the processes when soak started
// it.
func TestMain(m *testing.M) {
	if text := os.Getenv(planVariable); text != "" {
		if err := take(text); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func TestSoakCountsWhatHappens(t *testing.T) {
	redistest.Need(t)
	sum, err := soak(context.Background(), plan{For: 2 * time.Second, Processes: 3, Nodes: 3, Hold: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Acquired < 3 || sum.TwoHolders > 0 || len(sum.Waited) != sum.Acquired {
		t.Errorf("%v", sum)
	}
}

// TestSoakFindsWhatFails uses a node time limit that no server can meet.
func TestSoakFindsWhatFails(t *testing.T) {
	redistest.Need(t)
	sum, err := soak(context.Background(), plan{For: time.Second, Processes: 1, Nodes: 3, NodeTimeout: time.Nanosecond})
	if err == nil {
		t.Fatalf("a limit that is out of bounds was taken: %v", sum)
	}
	good := counts{Acquired: 1}
	if !good.well() {
		t.Error("nothing is wrong, and yet it is not well")
	}
	for name, bad := range map[string]counts{
		"nothing was acquired": {},
		"no quorum":            {Acquired: 1, NoQuorum: 1},
		"lost":                 {Acquired: 1, Lost: 1},
		"failed release":       {Acquired: 1, FailedReleases: 1},
		"another error":        {Acquired: 1, Others: 1},
		"two holders":          {Acquired: 1, TwoHolders: 1, Excused: 1},
	} {
		if bad.well() {
			t.Errorf("%s: it is taken for well", name)
		}
	}
	if excused := (counts{Acquired: 1, Lost: 1, Excused: 1}); !excused.well() {
		t.Error("a loss in a stall is not excused")
	}
}

func TestPlanOutOfBoundsIsRefused(t *testing.T) {
	good := plan{For: time.Second, Processes: 1, Nodes: 1}
	if err := good.check(nil); err != nil {
		t.Fatal(err)
	}
	for want, p := range map[string]plan{
		"-for": {Processes: 1, Nodes: 1}, "-processes": {For: time.Second, Nodes: 1},
		"-nodes": {For: time.Second, Processes: 1, Nodes: 16}, "-hold": {For: time.Second, Processes: 1, Nodes: 1, Hold: -1},
	} {
		if err := p.check(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := good.check([]string{"x"}); err == nil {
		t.Error("an argument was taken")
	}
}
