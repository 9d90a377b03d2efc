//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// leaving is how a wait for the end of a quarantine is shown.
var leaving = regexp.MustCompile(`waiting for (\d) nodes? to leave quarantine \((\d+s) left\)`)

// rebooted starts three servers with a quarantine of a little over ten seconds,
// and reboots them one after the other while no client runs. They keep their
// data.
func rebooted(t *testing.T) string {
	t.Helper()
	servers := servertest.Redis(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	declareNew(t, servers, brief...)
	for _, s := range servers {
		s.Kill()
		s.Restart()
	}
	return strings.Join(servertest.Addresses(servers), ",")
}

// TestNightlyRunAfterReboots: the quarantine of each server begins with the
// first request of the night.
func TestNightlyRunAfterReboots(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"once":             {"run", "--once", "2026-11-17"},
		"with a limit":     {"run", "-w", "1s"},
		"through the log":  {"run", "--json"},
		"lock with a wait": {"lock", "-w", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(args, "--nodes", rebooted(t), "nightly")
			if args[0] == "run" {
				args = append(args, "--", "echo", "REDLATCH_done")
			}
			start := time.Now()
			code, stdout, stderr := command(t, args...)
			if code != 0 || !strings.Contains(stdout, "REDLATCH_") || !leaving.MatchString(stderr) {
				t.Errorf("exit %d after %v, %s%s", code, time.Since(start), stdout, stderr)
			}
			if name == "through the log" && !strings.Contains(stderr, `"left_ms":`) {
				t.Errorf("no left_ms in %s", stderr)
			}
		})
	}
}

// TestNoWaitSaysWhenTheQuarantineEnds asks again at the time that the error names.
func TestNoWaitSaysWhenTheQuarantineEnds(t *testing.T) {
	t.Parallel()
	nodes := rebooted(t)
	again := regexp.MustCompile(`try again in (\d+s), or give -w (\d+s) to wait`)
	start := time.Now()
	for _, args := range [][]string{{"run", "-n"}, {"run", "-w", "0"}, {"lock", "-n"}} {
		args = append(args, "--nodes", nodes, "nightly")
		if args[0] == "run" {
			args = append(args, "--", "true")
		}
		code, _, stderr := command(t, args...)
		if code != exitNoQuorum || !again.MatchString(stderr) || strings.Count(stderr, "\n") != 1 {
			t.Fatalf("%q: exit %d, %s", args, code, stderr)
		}
		left, err := time.ParseDuration(again.FindStringSubmatch(stderr)[1])
		if passed := time.Since(start); err != nil || left > 11*time.Second || left+passed < 10*time.Second {
			t.Errorf("%q: %v left, %v after the first request, of 10.6s: %v", args, left, passed, err)
		}
		if wait, err := time.ParseDuration(again.FindStringSubmatch(stderr)[2]); err != nil || wait <= left {
			t.Errorf("%q: a wait of %v is too short for %v, %v", args, wait, left, err)
		}
		if args[0] == "lock" {
			time.Sleep(left)
		}
	}
	if code, _, stderr := command(t, "run", "-n", "--nodes", nodes, "nightly", "--", "true"); code != 0 {
		t.Errorf("after that time: exit %d, %s", code, stderr)
	}
}

// TestPostgresLineOfTheDocumentationWorksAsPrinted runs it on a database that was never
// used, with nothing changed but the address.
func TestPostgresLineOfTheDocumentationWorksAsPrinted(t *testing.T) {
	t.Parallel()
	server := servertest.OwnPostgreSQL(t)
	page, err := os.ReadFile("../../docs/get-started.md")
	must(t, err)
	line := regexp.MustCompile(`(?m)^redlatch run .*postgres://.*$`).FindString(string(page))
	if line == "" {
		t.Fatal("docs/get-started.md has no line with PostgreSQL")
	}
	address := regexp.MustCompile(`postgres://\S+`)
	line = address.ReplaceAllLiteralString(line, "'"+server.DSN()+"'")
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "report.sh"), []byte("#!/bin/sh\necho reported with $REDLATCH_TOKEN\n"), 0o700))
	for _, first := range []bool{true, false} {
		var stdout, stderr strings.Builder
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
		start := time.Now()
		code := exitCode(t, cmd.Run())
		took := time.Since(start)
		switch {
		case code != 0 || !strings.Contains(stdout.String(), "reported with "):
			t.Fatalf("%s: exit %d after %v, %s%s", line, code, took, stdout.String(), stderr.String())
		case first && (took < 30*time.Second || !strings.Contains(stderr.String(), "waiting for 1 node to leave quarantine")):
			t.Errorf("the first run took %v, %s", took, stderr.String())
		case !first && took > 20*time.Second:
			t.Errorf("the second run took %v, %s", took, stderr.String())
		}
	}
}
