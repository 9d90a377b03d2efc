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
				stdout := on(nodes).run(t, 0, "ls --json").stdout
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
			doctor := on(nodes).run(t, want, "doctor").out("suggested: --ttl")
			doctor.times(strings.Count(doctor.stdout, "danger   durability"), "danger   ")
		})
	}
}

// TestRefusalWithDatabasesAsksForAddresses has names of nodes that are no addresses.
func TestRefusalWithDatabasesAsksForAddresses(t *testing.T) {
	t.Parallel()
	one := servertest.PostgreSQL(t) + "&table=refused"
	three := one + "," + strings.Join(servertest.Addresses(servertest.Redis(t, 2)), ",")
	on(three).run(t, 0, "init --assume-fresh --yes")
	on(one).run(t, exitUsage, "run -n job -- true").err("run redlatch init --nodes NEW --former OLD with the addresses")
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
	for address, want := range map[on]string{
		"postgres://u:secret@h:port/d":      "postgres",
		"postgres://u@h/d?poll=maybe":       "poll",
		"postgres://u@h/d?table=a%20b":      "Table",
		"mysql://u:secret@h":                "database",
		"mysql://u:secret@h/d?compress=yes": "compress",
		"mysql://u:secret@h/d?tls=maybe":    "tls",
		"mysql://u:secret@/d":               "host",
	} {
		address.run(t, exitUsage, "run job -- true").err(want).never("secret")
	}
}
