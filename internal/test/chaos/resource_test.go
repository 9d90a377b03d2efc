//go:build unix

package chaos

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/check"
)

func TestResourceRefusesStaleHoldersOfEveryKind(t *testing.T) {
	p := slotsToo
	p.Name = "job"
	all := p.parts()
	r, err := openResource(filepath.Join(t.TempDir(), "resource.db"), true)
	check.Must(t, err)
	defer r.db.Close()
	check.Must(t, r.create(context.Background(), all))
	whole := func(token redlatch.Token) caller { return caller{1, token, all, all[1]} }
	part := func(slot int, token redlatch.Token) caller {
		return caller{1, token, all[slot : slot+1], all[slot]}
	}
	for i, s := range []struct {
		step  Step
		who   caller
		stale bool
	}{
		{step: Claim, who: part(0, 5)},
		{step: Claim, who: part(1, 4)}, // slots do not refuse each other
		{step: Write, who: part(1, 4)},
		{step: Claim, who: whole(7)},
		{step: Write, who: part(0, 5), stale: true},
		{step: Claim, who: part(2, 6), stale: true},
		{step: Look, who: whole(6), stale: true},
		{step: Write, who: whole(7)},
		{step: Look, who: whole(9)},
		{step: Look, who: whole(8)}, // nor do readers
		{step: Write, who: whole(7), stale: true},
		{step: Claim, who: part(2, 7), stale: true},
		{step: Claim, who: part(2, 10)},
		{step: Look, who: whole(9), stale: true},
		{step: Look, who: whole(11)},
		{step: Write, who: part(2, 10), stale: true},
	} {
		var err error
		if s.step == Write {
			err = r.write(s.who, int64(i))
		} else {
			_, err = r.look(s.who, s.step)
		}
		if errors.Is(err, fence.ErrStale) != s.stale || err != nil && !s.stale {
			t.Errorf("step %d, %q with token %d of %q: %v, want stale: %t", i+1, s.step, s.who.token, s.who.parts, err, s.stale)
		}
	}
	rows, counters, err := r.rows(context.Background())
	if err != nil || len(counters) != slots || counters[all[1]] != 8 {
		t.Errorf("counters %v, %v", counters, err)
	}
	steps := map[Step]int{}
	for _, row := range rows {
		steps[row.Step]++
	}
	if steps[Write] != 2 || steps[Claim] != 3+slots || steps[Look] != 3*slots {
		t.Errorf("accepted: %v", steps)
	}
}

func TestEveryRunHasEveryKind(t *testing.T) {
	for names := 1; names <= 9; names++ {
		readers, slotted, writers, downgrades := 0, 0, 0, 0
		for _, p := range plans(names, false) {
			readers, slotted, downgrades = readers+p.Readers, slotted+p.Slotted, downgrades+p.Downgrades
			writers += 100 - p.Readers - p.Slotted
			if p.Readers+p.Slotted > 100 {
				t.Errorf("%+v", p)
			}
		}
		if readers == 0 || slotted == 0 || writers == 0 || downgrades == 0 {
			t.Errorf("%d names: %+v", names, plans(names, false))
		}
	}
}
