package progress

import (
	"strings"
	"testing"
	"time"
)

func TestTimeLeftGoesByThePaceSoFar(t *testing.T) {
	began := time.Unix(1000, 0)
	// 30 of 90 planned seconds took 60: the other 60 will take 120.
	b := &Bar{total: 90 * time.Second, began: began, done: 30 * time.Second, stepBegan: began.Add(60 * time.Second), what: "x", step: 10 * time.Second}
	if line := b.line(began.Add(60 * time.Second)); !strings.Contains(line, "2m0s left") || !strings.Contains(line, " 33 %") {
		t.Fatal(line)
	}
	// A step that takes longer than planned does not run ahead of the plan.
	if line := b.line(began.Add(time.Hour)); !strings.Contains(line, " 44 %") {
		t.Fatal(line)
	}
}
