//go:build unix

package scenario_test

import (
	"context"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/test/interop/drive"
	"github.com/redlatch/redlatch/test/interop/foreign"
	"github.com/redlatch/redlatch/test/interop/scenario"
)

// doctoredLock is a client that keeps every rule but one.
type doctoredLock struct {
	rule       string
	server     *goredis.Client
	name, mine string
}

const (
	asksNobody     = "takes without NX"
	freesAnyones   = "deletes whoever's key it is"
	extendsAnyones = "sets whoever's key it is when it extends"
	pushesAnyones  = "lengthens whoever's key it is when it extends"
	freesNothing   = "says that it has released, and has not"
	elsewhere      = "has its keys elsewhere"
)

// doctored are the clients that break a rule each.
func doctored() []*foreign.Client {
	var list []*foreign.Client
	for _, rule := range []string{asksNobody, freesAnyones, extendsAnyones, pushesAnyones, freesNothing, elsewhere} {
		list = append(list, foreign.InGo(rule, func(addresses []string) (string, drive.Lock) {
			return "doctored", &doctoredLock{rule: rule, server: goredis.NewClient(&goredis.Options{Addr: addresses[0]})}
		}))
	}
	return list
}

func (l *doctoredLock) Acquire(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	if l.rule == elsewhere {
		name = "elsewhere:" + name
	}
	value := time.Now().String()
	ok, err := true, error(nil)
	if l.rule == asksNobody {
		err = l.server.Set(ctx, name, value, ttl).Err()
	} else {
		ok, err = l.server.SetNX(ctx, name, value, ttl).Result()
	}
	if ok && err == nil {
		l.name, l.mine = name, value
	}
	return ok, err
}

func (l *doctoredLock) Extend(ctx context.Context, ttl time.Duration) (bool, error) {
	switch {
	case l.rule == extendsAnyones:
		return true, l.server.Set(ctx, l.name, l.mine, ttl).Err()
	case l.rule == pushesAnyones:
		return l.server.PExpire(ctx, l.name, ttl).Result()
	case l.server.Get(ctx, l.name).Val() == l.mine:
		return l.server.PExpire(ctx, l.name, ttl).Result()
	}
	return false, nil
}

func (l *doctoredLock) Release(ctx context.Context) (bool, error) {
	if l.rule == freesNothing {
		return true, nil
	}
	if l.rule != freesAnyones && l.server.Get(ctx, l.name).Val() != l.mine {
		return false, nil
	}
	return true, l.server.Del(ctx, l.name).Err()
}

// TestClientsThatBreakARuleAreFoundOut plays the scenarios with clients that
// keep every rule but one, and with that one they must be caught.
func TestClientsThatBreakARuleAreFoundOut(t *testing.T) {
	t.Parallel()
	caught := map[string][]string{
		asksNobody:     {"excluded", "contention"},
		freesAnyones:   {"late release"},
		extendsAnyones: {"late extension"},
		pushesAnyones:  {"late extension"},
		freesNothing:   {"excludes"},
		elsewhere:      {"excludes"},
	}
	var parts []scenario.Part
	for _, c := range doctored() {
		parts = append(parts, scenario.Part{Client: c, Nodes: 1, Only: caught[c.Name]})
	}
	report(t, scenario.PlayAll(parts, atOnce, nil), func(t *testing.T, r *scenario.Row) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		for _, name := range caught[r.Client.Name] {
			if c := r.Cells[name]; c.Verdict != scenario.Breaks {
				t.Errorf("%s: %s, %s; want it red", name, c.Verdict, c.Text)
			}
		}
		if len(r.Unexpected()) == 0 {
			t.Error("the run would be green")
		}
	})
}
