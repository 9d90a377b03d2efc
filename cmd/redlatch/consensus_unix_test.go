//go:build unix

package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestEverythingRunsOnConsensusStores has every verb and mode run on etcd and on
// ZooKeeper, alone and beside two servers of Redis, where they count as one node.
func TestEverythingRunsOnConsensusStores(t *testing.T) {
	t.Parallel()
	for store, start := range map[string]func() string{
		"etcd":      func() string { return "etcd://" + servertest.OwnEtcd(t).Addr() },
		"zookeeper": func() string { return servertest.OwnZooKeeper(t, 1)[0].DSN() },
	} {
		address := start()
		redis := servertest.Addresses(servertest.Redis(t, 2))
		for name, nodes := range map[string][]string{"alone": {address + "/alone"}, "beside Redis": append(redis, address+"/mixed")} {
			t.Run(store+" "+name, func(t *testing.T) {
				t.Parallel()
				everythingRuns(t, nodes)
			})
		}
	}
}

func everythingRuns(t *testing.T, all []string) {
	nodes := strings.Join(all, ",")
	var stdout string // of the last command
	does := func(want int, verb string, args ...string) string {
		t.Helper()
		args = append([]string{verb, "--nodes", nodes}, args...)
		code, out, stderr := command(t, args...)
		if stdout = out; code != want {
			t.Errorf("%q: exit %d, want %d: %s%s", args, code, want, stdout, stderr)
		}
		return stdout
	}
	says := func(parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(stdout, part) {
				t.Errorf("there is no %q in\n%s", part, stdout)
			}
		}
	}
	does(0, "init", "--assume-fresh", "--yes")

	// run, and ls and ui meanwhile
	c := &crowd{t: t, path: buildCommand(t), nodes: []string{"--nodes", nodes}, dir: t.TempDir()}
	release := c.hold()
	const runs = 5
	for i := range runs {
		c.start(i)
	}
	does(0, "ls")
	says("job")
	page := servePage(t, "--listen", "127.0.0.1:0", "--nodes", nodes)
	if status, body := page.get(""); status != 200 || !strings.Contains(body, "job") || !strings.Contains(body, "nodes in service") && len(all) > 1 {
		t.Errorf("the page is %d: %s", status, body)
	}
	release()
	c.finish(runs)

	// tokens, for a fence
	last := 0
	for range 3 {
		token, err := strconv.Atoi(strings.TrimSpace(does(0, "run", "fenced", "--", "sh", "-c", "echo $REDLATCH_TOKEN")))
		if err != nil || token <= last {
			exclusion.Never(t, "token %d after %d, %v", token, last, err)
		}
		last = token
	}

	// several names, metrics, keep
	file := filepath.Join(t.TempDir(), "run.prom")
	does(0, "run", "--metrics", file, "one", "two", "--", "true")
	up := 0
	for series, value := range checkMetrics(t, file) {
		if strings.Contains(series, "node_up") && strings.Contains(series, `name="two"`) && value == "1" {
			up++
		}
	}
	if up != len(all) {
		t.Errorf("the metrics have %d nodes that are up, of %d", up, len(all))
	}
	does(0, "run", "--keep", "25s", "kept", "--", "true")
	does(exitHeld, "run", "-n", "kept", "--", "true")

	// once, and show
	ran := filepath.Join(t.TempDir(), "ran")
	for range 2 {
		does(0, "run", "--once", "today", "nightly", "--", "mkdir", ran) // which fails the second time
	}
	does(0, "show", "nightly")
	says("today")

	// lead
	if does(0, "lead", "leader", "--", "echo", "led"); stdout != "led\n" {
		t.Errorf("lead wrote %q", stdout)
	}

	// readers and slots
	for _, share := range [][]string{{"shared", "--shared"}, {"slotted", "--slots", "2"}} {
		args := append(share[1:], "--ttl", "25s")
		first := handleOf(t, nodes, share[0], args...)
		second := handleOf(t, nodes, share[0], args...)
		does(exitHeld, "run", "-n", share[0], "--", "true")
		for _, handle := range []string{first, second} {
			if code, _, stderr := commandWith(t, strings.NewReader(handle), "unlock", "--nodes", nodes, "-"); code != 0 {
				t.Errorf("unlock of %v: exit %d, %s", share, code, stderr)
			}
		}
		does(0, "run", "-n", share[0], "--", "true")
	}

	// handles, watch and break
	handle := handleOf(t, nodes, "broken", "--ttl", "25s")
	if code, _, stderr := commandWith(t, strings.NewReader(handle), "extend", "--nodes", nodes, "-"); code != 0 {
		t.Errorf("extend: exit %d, %s", code, stderr)
	}
	watch := exec.Command(buildCommand(t), "watch", "--nodes", nodes, "broken")
	out, err := watch.StdoutPipe()
	must(t, err)
	must(t, watch.Start())
	t.Cleanup(func() { watch.Process.Kill(); watch.Wait() })
	lines := bufio.NewScanner(out)
	for i, want := range []string{`held by \S+, token [0-9]{16}$`, `free$`} {
		if !lines.Scan() || !regexp.MustCompile(want).MatchString(lines.Text()) {
			t.Fatalf("watch wrote %q, want %s", lines.Text(), want)
		}
		if i == 0 {
			does(0, "break", "--yes", "broken")
		}
	}
	if code, _, stderr := commandWith(t, strings.NewReader(handle), "extend", "--nodes", nodes, "-"); code != exitLost {
		t.Errorf("extend after break: exit %d, %s", code, stderr)
	}

	code, stdout, stderr := command(t, "doctor", "--nodes", nodes)
	if code != 0 && code != exitEndangered || !strings.Contains(stdout, "suggested: --ttl") || !regexp.MustCompile(`(?m)^(etcd|zookeeper)://.* none$`).MatchString(stdout) {
		t.Errorf("doctor: exit %d, %s%s", code, stdout, stderr)
	}
}
