//go:build unix

package chaos

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
)

// A fault that does nothing would make every lock pass. So each test checks
// that a fault does what it says, and that healing undoes it.

// effect is what shows, for a family: what the server replies before the fault, while
// it lasts, and after it was healed, as says has it; and what else there is to see,
// while it lasts and after that. The fault is what the nemesis would record.
type effect struct {
	before, during, after string
	look                  func(b *bench, f *Fault, healed bool)
}

var long = strings.Repeat("x", 30_000)

var effects = map[string]effect{
	"kill":          {"SET k v", "PING = error", "EXISTS k = 1", nil},
	"empty":         {"SET k v", "PING = error", "EXISTS k = 0", nil},
	"cut-aof":       {"SET k " + long + "; SET padding " + long + "; SET last v", "PING = error", "EXISTS k = 1; EXISTS last = 0", nil},
	"freeze":        {"", "way PING = timeout", "PING = PONG", nil},
	"flush-data":    {"SET k v", "", "EXISTS k = 0", nil},
	"flush-scripts": {"SCRIPT LOAD return(1) = SHA", "", "SCRIPT EXISTS SHA = 0", nil},
	"full":          {"SET lock v PX 600000", "SET k v = error OOM; EXISTS lock = 1", "SET k v = OK", nil},
	"partition":     {"SET k 0", "way INCR k = timeout; GET k = 0", "way PING = PONG", nil},
	"swallow":       {"SET k 0", "way INCR k = timeout; GET k = 1", "way PING = PONG", nil},
	"evict": {"MSET lock1 v lock2 v lock3 v lock4 v", "", "EXISTS lock1 lock2 lock3 lock4 = 2; EXISTS redlatch:1:marker = 1",
		func(b *bench, f *Fault, _ bool) { b.is(len(f.Breaks) == 1, "breaks are %v", f.Breaks) }},
	"clock-jump": {look: func(b *bench, f *Fault, healed bool) {
		off := b.n.clock.Off()
		right := off.Abs() >= 100*time.Millisecond && (off > 0) == (len(f.Breaks) == 1)
		if healed {
			right = off == 0 && len(f.Breaks) == 1 // of there and back, one is forward
		}
		b.is(right, "the clock is off by %v, and breaks are %v", off, f.Breaks)
	}},
	"clock-drift": {look: func(b *bench, f *Fault, healed bool) {
		first := b.n.clock.Off()
		time.Sleep(20 * time.Millisecond)
		b.is((b.n.clock.Off() == first) == healed && len(f.Breaks) == 0, "the clock went from %v to %v, and breaks are %v", first, b.n.clock.Off(), f.Breaks)
	}},
	"set-back": {look: func(b *bench, f *Fault, _ bool) {
		b.is(b.n.clock.Off() == -time.Hour, "the clock is off by %v", b.n.clock.Off())
	}},
	"client-clock": {look: func(b *bench, _ *Fault, _ bool) {
		b.is(b.w.members[0].config.WallOff != 0, "the client's clock is right")
	}},
	"membership": {"SET k v", "", "EXISTS k = 0", func(b *bench, _ *Fault, _ bool) { // on the server that was removed
		listed := strings.Contains(b.w.members[0].config.Nodes, b.w.nodes[0].links[0].Addr())
		b.is(b.w.nodes[0] != b.n && listed, "the client does not have the new list")
	}},
	"break": {"LOCK", "", "LOCK", func(b *bench, f *Fault, _ bool) {
		b.is(len(f.Broken) == 1 && f.Broken[0].Name == "job" && f.Broken[0].Sure, "what is noted is %+v", f.Broken)
	}},
	"delay": {after: "way PING = PONG", look: func(b *bench, _ *Fault, healed bool) {
		begin := time.Now()
		_, err := b.over(time.Minute, "PING")
		b.is(err == nil && (healed || time.Since(begin) >= time.Millisecond), "after %v: %v", time.Since(begin), err)
	}},
	"reset": {"CONNECT", "", "way PING = PONG", func(b *bench, _ *Fault, _ bool) {
		b.conn.SetReadDeadline(time.Now().Add(time.Minute))
		_, err := b.conn.Read(make([]byte, 1))
		b.is(err != nil && !timesOut(err), "the connection is still open: %v", err)
	}},
	"pause": {look: func(b *bench, _ *Fault, healed bool) { b.state(map[bool]string{true: "S", false: "T"}[healed]) }},
	"client-kill": {look: func(b *bench, _ *Fault, healed bool) {
		b.is((b.w.members[0].cmd == nil) == !healed, "the client runs: %v", !healed)
		if healed {
			b.state("S")
			b.is(b.w.members[0].config.Life == 2, "the client is in its life %d", b.w.members[0].config.Life)
		}
	}},
}

// elsewhere are the faults that other tests have: those of clusters, and failovers.
var elsewhere = []string{"compact", "expire", "failover"}

func TestEveryFaultDoesWhatItSaysAndIsHealed(t *testing.T) {
	for _, family := range Families() {
		if slices.Contains(elsewhere, family.Name) {
			continue
		}
		t.Run(family.Name, func(t *testing.T) {
			t.Parallel()
			effect, ok := effects[family.Name]
			if !ok {
				t.Fatal("nothing is known of its effect")
			}
			b := newBench(t, family, Redis)
			s := family.draw(b.w, rand.New(rand.NewPCG(1, 1)))
			if s == nil {
				t.Fatal("it finds nothing to strike")
			}
			f := &Fault{Span: Span{From: now()}}
			b.says(effect.before)
			check.Must(t, s.apply(f))
			if s.heal != nil {
				b.says(effect.during)
				if effect.look != nil {
					effect.look(b, f, false)
				}
				check.Must(t, s.heal(f))
			}
			b.says(effect.after)
			if effect.look != nil {
				effect.look(b, f, true)
			}
		})
	}
}

func TestFaultsThatAreChosenByNameAreThose(t *testing.T) {
	names := func(list string) (all []string) {
		families, err := Choose(list)
		check.Must(t, err)
		for _, f := range families {
			all = append(all, f.Name)
		}
		return all
	}
	for list, want := range map[string]string{
		"edges": "membership break set-back", "beyond": "evict clock-jump", "none": "", "kill, pause,kill": "kill pause",
	} {
		if got := strings.Join(names(list), " "); got != want {
			t.Errorf("%s are %q", list, got)
		}
	}
	if all, within := names("all"), names("within"); len(all)+3 != len(Families()) || len(within)+2 != len(all) || slices.Contains(within, "evict") {
		t.Errorf("all are %q, and within are %q", all, within)
	}
}
