package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/holders"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/observe"
)

const wiped = "\r\x1b[K"

func TestWaitingShowsTheHolderSinceWhenAndThePlaceInLine(t *testing.T) {
	t.Parallel()
	dir, release := holdJob(t)
	c := onTerminal(t, "env", "TERM=xterm", "REDLATCH_NODES=local", "REDLATCH_STATE_DIR="+dir, "NO_COLOR=1", "redlatch", "run", "job", "--", "echo", "mine")
	// On a busy machine it may see the holder before it has a place.
	line := c.shows(wiped + `redlatch: waiting for "job", 1st in the queue (`)
	line += c.shows("/night-shift since ")
	c.shows("(1s so far): held by ") // it is kept up to date
	release()
	rest := c.shows("mine")
	if !strings.HasSuffix(rest, wiped+"mine") {
		t.Errorf("the line is still there when CMD runs: %q", rest)
	}
	if strings.Contains(line+rest, "\x1b[2m") {
		t.Errorf("with NO_COLOR there is colour: %q", line)
	}
	if code := exitCode(t, c.cmd.Wait()); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestWaitingLineObeysNobody(t *testing.T) {
	value := strings.Repeat("0", 32) + ":host/1/\x1b]0;pwned\a"
	view := func(r node.Reply) waitView {
		r.Status = node.Held
		return waitView{name: "job", holders: holders.Of[redlatch.Holder](observe.Result{Reply: r}), nodes: 1, place: 2, waited: 3 * time.Second}
	}
	got := view(node.Reply{Taken: node.Taken{Value: value}, Left: 1234 * time.Millisecond}).line()
	if strings.ContainsAny(got, "\x1b\a") || !strings.HasPrefix(got, `redlatch: waiting for "job", 2nd in the queue (3s so far): held by another client ("`) ||
		!strings.HasSuffix(got, `); it expires in 1s unless extended`) {
		t.Errorf("a holder with control characters in its name: %q", got)
	}
	got = view(node.Reply{Taken: node.Taken{Value: "some value"}, Left: node.NoExpiry}).line()
	if !strings.Contains(got, `: held by another client ("some value") with no expiry`) {
		t.Errorf("a plain lock: %q", got)
	}
	if got, want := (waitView{name: "job", nodes: 3, silent: 2}).line(), `redlatch: waiting for "job" (0s so far): 2 of 3 nodes do not answer`; got != want {
		t.Errorf("an outage: %q, want %q", got, want)
	}
	if got := (waitView{quarantined: 3, left: 31 * time.Second, fresh: true}).line(); !strings.HasSuffix(got, "(31s left): "+lockerrors.NewServers+"; "+lockerrors.AvoidWait) {
		t.Errorf("new servers: %q", got)
	}
}

// TestWaitGoesOnThroughAnOutageOnceTheNodesHaveAnswered freezes a server for longer
// than a server that never answered is waited for.
func TestWaitGoesOnThroughAnOutageOnceTheNodesHaveAnswered(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	nodes := server.URL()
	release := hold(t, t.TempDir(), "redlatch", "run", "--ttl", "30s", "--nodes", nodes)
	shown := onTerminal(t, "env", "TERM=xterm", "NO_COLOR=1", "redlatch", "run", "--nodes", nodes, "job", "--", "echo", "mine")
	shown.shows("1st in the queue")
	quiet := onTerminal(t, "redlatch", "run", "-q", "--nodes", nodes, "job", "--", "echo", "mine")
	if !poll.Holds(poll.Patience, func() bool { return strings.Contains(these(server).run(t, 0, "ls").stdout, "  2  ") }) {
		t.Fatal("they do not both wait")
	}
	server.Freeze()
	quiet.shows("; waiting for them")
	shown.shows(`waiting for nodes for "job" (`)
	server.Thaw()
	shown.shows("in the queue")
	release()
	shown.shows("mine")
	quiet.shows("mine")
}

func TestPlacesAreOrdinals(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// TestWaitingWithoutATerminalSaysSoNowAndThen has waiters with stderr in a file.
// They say what they wait for, without being looked at, and with -q nothing.
func TestWaitingWithoutATerminalSaysSoNowAndThen(t *testing.T) {
	t.Parallel()
	dir, release := holdJob(t)
	type waiter struct {
		cmd    *exec.Cmd
		stdout strings.Builder
		stderr string // the file
	}
	said := func(w *waiter) string { text, _ := os.ReadFile(w.stderr); return string(text) }
	all := map[string]*waiter{}
	for name, args := range map[string][]string{
		"run":   {"run", "job", "--", "true"},
		"quiet": {"run", "-q", "job", "--", "true"},
		"JSON":  {"run", "--json", "job", "--", "true"},
		"lock":  {"lock", "--ttl", "100ms", "job"},
	} {
		w := &waiter{cmd: exec.Command("redlatch", args...), stderr: filepath.Join(dir, name)}
		file, err := os.Create(w.stderr)
		must(t, err)
		defer file.Close()
		w.cmd.Env = append(os.Environ(), "REDLATCH_NODES=local", "REDLATCH_STATE_DIR="+dir)
		w.cmd.Stdout, w.cmd.Stderr = &w.stdout, file
		must(t, w.cmd.Start())
		t.Cleanup(func() { w.cmd.Process.Kill() })
		all[name] = w
	}
	if !poll.Holds(poll.Patience, func() bool { return said(all["run"]) != "" && said(all["JSON"]) != "" && said(all["lock"]) != "" }) {
		t.Error("they wait in silence")
	}
	release()
	line := regexp.MustCompile(`^redlatch: waiting for "job", [1-4](st|nd|rd|th) in the queue \(\d+s so far\): held by \S+/night-shift since \S+ \(\d+s ago\); it expires in \S+ unless extended\n`)
	for name, w := range all {
		w.cmd.Wait()
		switch text := said(w); name {
		case "quiet":
			if text != "" {
				t.Errorf("with -q: %q", text)
			}
		case "JSON":
			if !regexp.MustCompile(`"event":"waiting","name":"job","message":"waiting for .*","holders":\[\{"owner":.*\}\],"place":[1-4],"waited_ms":[0-9.]+\}\n`).MatchString(text) {
				t.Errorf("in JSON: %q", text)
			}
		default:
			if !line.MatchString(text) || strings.Contains(w.stdout.String(), "waiting") {
				t.Errorf("%s: %q, want %v", name, text, line)
			}
		}
	}
}

func TestLinesAboutAWaitBecomeEverRarer(t *testing.T) {
	var at []time.Duration
	for waited := waitLine; waited < time.Hour; waited += nextLine(waited) {
		at = append(at, waited)
	}
	if len(at) < 5 || len(at) > 12 || at[1] != 4*waitLine || at[2] != 16*waitLine {
		t.Errorf("within an hour there are lines after %v", at)
	}
	if d := nextLine(24 * time.Hour); d != waitMost {
		t.Errorf("after a day the next line is %v away", d)
	}
}
