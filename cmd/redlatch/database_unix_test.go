//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestRunsOnDatabasesTakeTurns has a run wait for another on every store, and on a
// quorum of three kinds.
func TestRunsOnDatabasesTakeTurns(t *testing.T) {
	t.Parallel()
	postgres := servertest.PostgreSQL(t)
	maria := "mysql://" + strings.NewReplacer("@tcp(", "@", ")", "").Replace(servertest.MariaDB(t))
	redis := servertest.Redis(t, 4)
	for name, nodes := range map[string]string{
		"redis":            strings.Join(servertest.Addresses(redis[1:]), ","),
		"postgres":         postgres + "&table=command",
		"mysql":            maria + "?table=command",
		"etcd":             "etcd://" + servertest.OwnEtcd(t).Addr() + "/alone",
		"zookeeper":        servertest.OwnZooKeeper(t, 1)[0].DSN() + "/alone",
		"one of each kind": redis[0].URL() + "," + postgres + "&table=mixed," + maria + "?table=mixed",
	} {
		t.Run(name, func(t *testing.T) {
			declareAllNew(t, nodes)
			dir := t.TempDir()
			over := filepath.Join(dir, "over")
			release := hold(t, dir, buildCommand(t), "run", "-q", "--nodes", nodes)
			waiter, said := start(t, "run", "-q", "--nodes", nodes, "job", "--", "test", "-e", over)
			poll.Until(t, "the waiter in the list", func() bool {
				_, stdout, _ := command(t, "ls", "--json", "--nodes", nodes)
				return strings.Contains(stdout, `"name":"job","state":"held"`) && strings.Contains(stdout, `"waiting":1,"nodes"`)
			})
			must(t, os.WriteFile(over, nil, 0o600))
			release()
			if code := exitCode(t, waiter.Wait()); code != 0 {
				t.Errorf("the waiter did not run after the holder: exit %d, %s", code, said)
			}
			// The servers of tests do not wait for the disk, except those of etcd and ZooKeeper.
			want := exitEndangered
			if name == "etcd" || name == "zookeeper" || name == "redis" {
				want = 0
			}
			code, stdout, stderr := command(t, "doctor", "--nodes", nodes)
			if code != want || strings.Count(stdout, "danger   ") != strings.Count(stdout, "danger   durability") || !strings.Contains(stdout, "suggested: --ttl") {
				t.Errorf("doctor: exit %d, %s%s", code, stdout, stderr)
			}
		})
	}
}

// TestRefusalWithDatabasesAsksForAddresses has names of nodes that are no addresses.
func TestRefusalWithDatabasesAsksForAddresses(t *testing.T) {
	t.Parallel()
	one := servertest.PostgreSQL(t) + "&table=refused"
	three := one + "," + strings.Join(servertest.Addresses(servertest.Redis(t, 2)), ",")
	if code, _, stderr := command(t, "init", "--assume-fresh", "--yes", "--nodes", three); code != 0 {
		t.Fatalf("init: exit %d, %s", code, stderr)
	}
	code, _, stderr := command(t, "run", "-n", "--nodes", one, "job", "--", "true")
	if code != exitUsage || !strings.Contains(stderr, "run redlatch init --nodes NEW --former OLD with the addresses") {
		t.Errorf("run with another membership: exit %d, %s", code, stderr)
	}
}

func TestSchemaIsWhatTheNodeCreates(t *testing.T) {
	for _, kind := range []string{"postgres", "mysql"} {
		code, stdout, stderr := command(t, "schema", kind, "--table", "ops.locks")
		if code != 0 || !strings.Contains(stdout, "CREATE TABLE IF NOT EXISTS") || !strings.Contains(stdout, "GRANT") || strings.Contains(stdout, "redlatch_lock") {
			t.Errorf("%s: exit %d, %s%s", kind, code, stdout, stderr)
		}
	}
}

func TestAddressesOfDatabasesAreChecked(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u:secret@h:port/d":      "postgres",
		"postgres://u@h/d?poll=maybe":       "poll",
		"postgres://u@h/d?table=a%20b":      "Table",
		"mysql://u:secret@h":                "database",
		"mysql://u:secret@h/d?compress=yes": "compress",
		"mysql://u:secret@h/d?tls=maybe":    "tls",
		"mysql://u:secret@/d":               "host",
	} {
		code, _, stderr := command(t, "run", "--nodes", address, "job", "--", "true")
		if code != exitUsage || !strings.Contains(stderr, want) || strings.Contains(stderr, "secret") {
			t.Errorf("%s: exit %d, %s", address, code, stderr)
		}
	}
}
