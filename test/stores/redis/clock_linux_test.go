package redis_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestExaminationFindsClocksThatAreApart(t *testing.T) {
	t.Parallel()
	servers := append(servertest.Redis(t, 2), servertest.StartWithClock(t, -3*time.Second), servertest.StartWithClock(t, time.Hour))
	found, up := examine(t, nodesOf(drivers["rueidis"](servertest.Addresses(servers)...)), redlatch.Options{Guard: redlatch.GuardOff}, "")
	if !slices.Contains(found, "danger clock") || !slices.Contains(found, "warning clock") {
		t.Errorf("found is %q", found)
	}
	if off := up.Nodes[3].Clock - time.Hour; off.Abs() > time.Second {
		t.Errorf("a clock that is an hour ahead is said to be %v ahead", up.Nodes[3].Clock)
	}
}
