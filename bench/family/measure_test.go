package family

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
)

// TestMain lets the program of the tests be its own contenders.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Argument {
		if err := Contend(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// module is the folder of this module, seen from this package.
const module = ".."

// installed returns the rows that can be measured here: those in Go, and those in
// other languages if make bench-family has installed them.
func installed(t *testing.T) (all []Peer) {
	for _, p := range Peers {
		if _, _, err := p.command(module); err != nil && p.Runtime != "" {
			t.Logf("%s is left out: %v", p.ID(), err)
			continue
		}
		all = append(all, p)
	}
	return all
}

var short = Times{Warm: 100 * time.Millisecond, WarmJava: 100 * time.Millisecond, Settle: 20 * time.Millisecond, Round: 150 * time.Millisecond, Rounds: 2}

func TestEveryRowIsMeasured(t *testing.T) {
	for _, p := range installed(t) { // one after the other: each fills the machine
		t.Run(p.ID(), func(t *testing.T) {
			r := Measure(t.Context(), []Peer{p}, module, short, func(string) {})[0]
			if r.Failed != "" {
				t.Fatal(r.Failed)
			}
			if r.Rate == 0 || r.Commands < 1.5 || r.Waits.Count == 0 || r.Held.Median < 900*time.Microsecond || len(r.Rates) != 2 {
				t.Fatalf("%+v", r)
			}
			if p.Situation == Readers && r.WriterWaits.Count == 0 {
				t.Fatalf("no writers: %+v", r)
			}
			if p.Ours && r.Seen.Breaks(p.Limit()) {
				t.Fatalf("%+v", r.Seen)
			}
		})
	}
}

func TestARowThatCannotBeMeasuredSaysSo(t *testing.T) {
	t.Parallel()
	for _, p := range []Peer{{Key: "nobody", Nodes: 1, Situation: Slots}, {Key: "semaphore", Nodes: 1, Situation: Slots, Runtime: "node"}} {
		if r := Measure(t.Context(), []Peer{p}, t.TempDir(), short, func(string) {})[0]; r.Failed == "" {
			t.Errorf("%s: %+v", p.Key, r)
		}
	}
}

// What a row's clients send is what MONITOR shows of them.
func TestCommandsAreThoseThatMonitorShowsFromClients(t *testing.T) {
	for _, p := range installed(t) { // one after the other: each fills the machine
		t.Run(p.ID(), func(t *testing.T) {
			e := &entrant{row: &Row{Peer: p}}
			defer e.stop()
			if err := e.start(t.Context(), module); err != nil {
				t.Fatal(err)
			}
			var monitors []*bufio.Scanner
			for _, address := range e.redis.Addresses() {
				m, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				m.SetDeadline(time.Now().Add(time.Minute))
				lines := bufio.NewScanner(m)
				lines.Buffer(nil, 1<<20) // a line has a whole script
				if fmt.Fprint(m, "MONITOR\r\n"); !lines.Scan() {
					t.Fatal(lines.Err())
				}
				monitors = append(monitors, lines)
			}
			before, err := e.redis.Sample()
			if err != nil {
				t.Fatal(err)
			}
			o := Order{Name: "seen", Start: clock.Now(), End: clock.Now() + int64(300*time.Millisecond)}
			if err := e.team.begin(o); err != nil {
				t.Fatal(err)
			}
			if _, _, err := e.team.finish(o); err != nil {
				t.Fatal(err)
			}
			after, err := e.redis.Sample()
			if err != nil {
				t.Fatal(err)
			}
			counted, shown := p.sent(after.Sub(before).Commands), []string(nil)
			for _, m := range monitors {
				shown = append(shown, shownBetween(t, m)...)
			}
			if counted != int64(len(shown)) || counted < 20 {
				names := map[string]int{}
				for _, c := range shown {
					name, _, _ := strings.Cut(c, " ")
					names[strings.ToLower(name)]++
				}
				t.Fatalf("counted %d of %v; MONITOR showed %d: %v", counted, after.Sub(before).Commands, len(shown), names)
			}
		})
	}
}

// shownBetween returns what clients sent between two readings of the
// statistics.
func shownBetween(t *testing.T, m *bufio.Scanner) []string {
	t.Helper()
	var sent []string
	for samples := 0; ; {
		if !m.Scan() {
			t.Fatal(m.Err())
		}
		_, text, _ := strings.Cut(m.Text(), " [0 ")
		client, command, _ := strings.Cut(text, "] ")
		switch {
		case client == "lua":
		case strings.HasSuffix(command, `"commandstats"`):
			if samples++; samples == 2 {
				return sent
			}
		case samples == 1:
			sent = append(sent, command)
		}
	}
}

func TestCrossingRequestsNeverGetMoreSlotsThanThereAre(t *testing.T) {
	for _, p := range installed(t) {
		if !p.Crosses() {
			continue
		}
		t.Run(p.Key, func(t *testing.T) {
			c := Cross(t.Context(), p, module, 2)
			if c.Failed != "" {
				t.Fatal(c.Failed)
			}
			if p.Ours && (c.Above() > 0 || c.Most() == 0) {
				t.Fatalf("holders of %d slots: %v", crossingSlots, c.Holders)
			}
			// That the arrivals cross as they should shows in a peer that
			// counts on each server by itself.
			if !p.Ours && c.Above() == 0 {
				t.Errorf("holders of %d slots: %v; want three, else the arrivals do not cross", crossingSlots, c.Holders)
			}
		})
	}
}

func TestALinkIsSlowInOneDirection(t *testing.T) {
	t.Parallel()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		c, err := echo.Accept()
		if err == nil {
			io.Copy(c, c)
		}
	}()
	const delay = 50 * time.Millisecond
	l, err := startLink(echo.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	c, err := net.Dial("tcp", l.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, text := range []string{"first", "second"} {
		began := time.Now()
		fmt.Fprint(c, text)
		answer := make([]byte, len(text))
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != text {
			t.Fatalf("got %q, %v", answer, err)
		}
		if took := time.Since(began); took < delay {
			t.Fatalf("it took %v; want at least %v", took, delay)
		}
	}
}

func TestOneOfTenRequestsIsAWriters(t *testing.T) {
	t.Parallel()
	c := Config{WriteEvery: 10}
	writes := 0
	for n := range 1000 {
		if c.writes(3, n) {
			writes++
		}
	}
	if writes != 100 || !c.writes(7, 3) || (Config{}).writes(0, 0) {
		t.Fatalf("%d of 1000", writes)
	}
}
