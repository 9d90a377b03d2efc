//go:build unix

package chaos

import (
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
)

// A fault that does nothing would make every lock pass. So each test checks
// that a fault does what it says, and that healing undoes it.

// effect checks, for a family, the state before the fault, while it lasts, and after
// it was healed. The fault is what the nemesis would record.
type effect struct {
	before, during, after func(b *bench, f *Fault)
}

// sets writes a key, and has, lacks, works and answers look at the server, itself or
// by the client's way.
func sets(b *bench, _ *Fault)    { b.ask("SET", "k", "v") }
func has(b *bench, _ *Fault)     { b.has("k") }
func lacks(b *bench, _ *Fault)   { b.lacks("k") }
func works(b *bench, _ *Fault)   { b.ask("PING") }
func answers(b *bench, _ *Fault) { b.answers() }

var effects = map[string]effect{
	"kill": {
		before: sets,
		during: func(b *bench, _ *Fault) {
			if b.n.at().Pid() != 0 {
				b.Error("the server still runs")
			}
		},
		after: has,
	},
	"empty": {before: sets, after: lacks},
	"cut-aof": {
		before: func(b *bench, _ *Fault) {
			b.ask("SET", "k", strings.Repeat("x", 30_000))
			b.ask("SET", "padding", strings.Repeat("x", 30_000))
			b.ask("SET", "last", "v")
		},
		after: func(b *bench, _ *Fault) {
			b.has("k")
			b.lacks("last")
		},
	},
	"freeze": {
		during: func(b *bench, _ *Fault) {
			if _, err := b.over(awhile, "PING"); !timesOut(err) {
				b.Errorf("it is not silent: %v", err)
			}
		},
		after: works,
	},
	"flush-data": {before: sets, after: lacks},
	"flush-scripts": {
		before: func(b *bench, _ *Fault) { b.ask("SCRIPT", "LOAD", "return 1") },
		after: func(b *bench, _ *Fault) {
			if b.ask("SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db") != "0" {
				b.Error("the script is still there")
			}
		},
	},
	"full": {
		before: func(b *bench, _ *Fault) { b.ask("SET", "lock", "v", "PX", "600000") },
		during: func(b *bench, _ *Fault) {
			if _, err := b.n.at().Ask("SET", "k", "v"); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
				b.Errorf("it takes a write: %v", err)
			}
			b.has("lock")
		},
		after: sets,
	},
	"evict": {
		before: func(b *bench, _ *Fault) {
			for i := range 20 {
				b.ask("SET", "lock"+strconv.Itoa(i), "v", "PX", "600000")
			}
		},
		after: func(b *bench, f *Fault) {
			b.has("redlatch:1:marker")
			if left := strings.Count(b.ask("KEYS", "*"), "lock"); left != 10 || len(f.Breaks) != 1 {
				b.Errorf("%d of 20 keys are left, %d breaks are noted", left, len(f.Breaks))
			}
		},
	},
	"clock-jump": {
		during: func(b *bench, f *Fault) {
			b.wantOff(b.n.clock.Off().Abs() >= 100*time.Millisecond && (b.n.clock.Off() > 0) == (len(f.Breaks) == 1), f)
		},
		after: func(b *bench, f *Fault) {
			b.wantOff(b.n.clock.Off() == 0 && len(f.Breaks) == 1, f) // of there and back, one is forward
		},
	},
	"membership": {
		before: sets,
		after: func(b *bench, _ *Fault) {
			b.lacks("k") // the server that was removed
			if b.w.nodes[0] == b.n || !strings.Contains(b.w.members[0].config.Nodes, b.w.nodes[0].links[0].Addr()) {
				b.Error("the client does not have the new list")
			}
		},
	},
	"break": {
		before: func(b *bench, _ *Fault) { b.lock() },
		after: func(b *bench, f *Fault) {
			b.lock()
			if len(f.Broken) != 1 || f.Broken[0].Name != "job" || !f.Broken[0].Sure {
				b.Errorf("what is noted is %+v", f.Broken)
			}
		},
	},
	"set-back": {
		after: func(b *bench, f *Fault) { b.wantOff(b.n.clock.Off() == -time.Hour, f) },
	},
	"clock-drift": {
		during: func(b *bench, _ *Fault) {
			for first := b.n.clock.Off(); b.n.clock.Off() == first; {
				time.Sleep(time.Millisecond)
			}
		},
		after: func(b *bench, f *Fault) {
			first := b.n.clock.Off()
			time.Sleep(20 * time.Millisecond)
			b.wantOff(b.n.clock.Off() == first && len(f.Breaks) == 0, f)
		},
	},
	"client-clock": {after: func(b *bench, _ *Fault) {
		if off := b.w.members[0].config.WallOff; off == 0 {
			b.Error("the client's clock is right")
		}
	}},
	"partition": {
		during: func(b *bench, _ *Fault) {
			b.ask("SET", "k", "0")
			if _, err := b.over(awhile, "INCR", "k"); !timesOut(err) || b.ask("GET", "k") != "0" {
				b.Errorf("it is not cut off: %v, %s", err, b.ask("GET", "k"))
			}
		},
		after: answers,
	},
	"swallow": {
		during: func(b *bench, _ *Fault) {
			b.ask("SET", "k", "0")
			if _, err := b.over(awhile, "INCR", "k"); !timesOut(err) || b.ask("GET", "k") != "1" {
				b.Errorf("a request does not arrive, or a reply does: %v, %s", err, b.ask("GET", "k"))
			}
		},
		after: answers,
	},
	"delay": {
		during: func(b *bench, _ *Fault) {
			begin := time.Now()
			if _, err := b.over(time.Minute, "PING"); err != nil || time.Since(begin) < time.Millisecond {
				b.Errorf("after %v: %v", time.Since(begin), err)
			}
		},
		after: answers,
	},
	"reset": {
		before: func(b *bench, _ *Fault) {
			var err error
			b.conn, err = net.Dial("tcp", b.n.links[0].Addr())
			check.Must(b, err)
			io.WriteString(b.conn, "PING\r\n")
			io.ReadFull(b.conn, make([]byte, len("+PONG\r\n")))
		},
		after: func(b *bench, _ *Fault) {
			defer b.conn.Close()
			b.conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := b.conn.Read(make([]byte, 1)); err == nil || timesOut(err) {
				b.Errorf("the connection is still open: %v", err)
			}
			b.answers()
		},
	},
	"pause": {
		during: func(b *bench, _ *Fault) { b.state("T") },
		after:  func(b *bench, _ *Fault) { b.state("S") },
	},
	"client-kill": {
		during: func(b *bench, _ *Fault) {
			if b.w.members[0].cmd != nil {
				b.Error("the client still runs")
			}
		},
		after: func(b *bench, _ *Fault) {
			b.state("S")
			if life := b.w.members[0].config.Life; life != 2 {
				b.Errorf("the client is in its life %d", life)
			}
		},
	},
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
			step := func(look func(*bench, *Fault), then func(*Fault) error) {
				if look != nil {
					look(b, f)
				}
				if then != nil {
					check.Must(t, then(f))
				}
			}
			step(effect.before, s.apply)
			step(effect.during, s.heal)
			step(effect.after, nil)
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
