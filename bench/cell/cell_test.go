package cell

import (
	"testing"
	"time"
)

func TestEveryPlannedCellCanBeRunByItsID(t *testing.T) {
	for _, s := range []Settings{Full(), Quick()} {
		seen := map[string]bool{}
		for _, c := range Plan(s) {
			id := c.ID()
			if seen[id] {
				t.Errorf("%s is planned twice", id)
			}
			seen[id] = true
			if got, err := Find(id); err != nil || got != c {
				t.Errorf("Find(%s) = %+v, %v; want %+v", id, got, err, c)
			}
		}
	}
}

func TestIDsThatNameNoCellAreRefused(t *testing.T) {
	for _, id := range []string{
		"", "pair", "pair/x/redlatch", "pair/0/redlatch", "pair/1/2/redlatch", "contended/16/5/redlatch",
		"contended/16/1us/5/redlatch", "leases/1e9/1/redlatch", "other/1/redlatch", "pair/1/other",
	} {
		if c, err := Find(id); err == nil {
			t.Errorf("Find(%q) = %+v", id, c)
		}
	}
}

func TestTheWholeBenchTakesNoLongerThan25Minutes(t *testing.T) {
	s := Full()
	var sum time.Duration
	for _, c := range Plan(s) {
		sum += s.Duration(c)
	}
	if sum > 25*time.Minute {
		t.Errorf("it is planned to take %v", sum)
	}
	t.Log(sum)
}

func TestThousandContendersAreFiftyProcesses(t *testing.T) {
	if p, th := (Cell{Count: 1000}).Processes(); p != 50 || th != 20 {
		t.Errorf("got %d of %d", p, th)
	}
	if p, th := (Cell{Count: 128}).Processes(); p != 128 || th != 1 {
		t.Errorf("got %d of %d", p, th)
	}
}

func TestComparedContendersAreMeasuredInTurns(t *testing.T) {
	for _, b := range Batches(Plan(Full())) {
		if b[0].Kind == Pair && len(b) < 5 {
			t.Errorf("only %d contenders in %s", len(b), b[0].ID())
		}
		if b[0].Kind == Contended && len(b) != 1 {
			t.Errorf("%d contenders at once in %s", len(b), b[0].ID())
		}
	}
}
