//go:build unix

package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // what executes statements on PostgreSQL

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// failover replaces a node's server by a replica that lacks its last writes, while
// half of the clients are stopped, each at a moment of its own. So a client may
// have read from the old server, and write to the new one: replies are slow before
// it is stopped, so that it is likely to be waiting for one. The old server does
// not come back, except behind a sentinel.
func failover(w *nemesis, n *node, rng *rand.Rand) strike {
	lag := between(rng, 50*time.Millisecond, 600*time.Millisecond)
	quarantine := w.bounds.quarantine() + 3*time.Second // time to work in, before the next one
	apply := func(*Fault) error {
		thaw := func() {}
		defer func() { thaw() }()
		return n.promote(func() { thaw = w.stopSome(n, rng) }, lag)
	}
	if sentinel, ok := n.current().(*watched); ok {
		quarantine += replicaLag + 2*time.Second
		apply = func(*Fault) error {
			thaw := w.stopSome(n, rng)
			time.Sleep(lag)
			return sentinel.failover(rng, thaw)
		}
	}
	return strike{detail: fmt.Sprintf("fails over; the last %v are lost, and some clients are stopped", lag.Round(time.Millisecond)), quarantine: quarantine, apply: apply}
}

// slowReply is how long a reply takes before a client is stopped.
const slowReply = 20 * time.Millisecond

// stopSome stops half of the clients, and returns when it is over. The returned
// function lets them go on, each after a while.
func (w *nemesis) stopSome(n *node, rng *rand.Rand) (thaw func()) {
	var all sync.WaitGroup
	var later []func()
	for _, i := range rng.Perm(len(w.members))[:(len(w.members)+1)/2] {
		m, link := w.members[i], n.links[i]
		at, pause := between(rng, 2*slowReply, 4*slowReply), between(rng, 0, 400*time.Millisecond)
		link.Set(servertest.Weather{Replies: servertest.Direction{Delay: slowReply}})
		all.Go(func() {
			time.Sleep(at)
			m.freeze() // one that was killed meanwhile is not stopped
		})
		later = append(later, func() {
			link.Set(servertest.Weather{})
			time.Sleep(pause)
			m.thaw()
		})
	}
	all.Wait()
	time.Sleep(slowReply) // the last replies arrive
	return func() {
		for _, f := range later {
			all.Go(f)
		}
		all.Wait()
	}
}

// promote replaces the node's server by a replica. It calls before when the replica
// has all that the server has. After the promotion, clients write to the old server
// for lag; then the node's address leads to the new one.
func (n *node) promote(before func(), lag time.Duration) error {
	old := n.current()
	replica, promote, err := n.follow(old)
	if err == nil {
		before()
		err = again(promote) // what the replica receives may cancel a statement
	}
	if err != nil {
		replica.Stop()
		return err
	}
	time.Sleep(lag) // the fault itself
	n.become(replica)
	old.Stop()
	return nil
}

// follow starts a replica of a server, and waits until it has its data. It returns
// what promotes it.
func (n *node) follow(old server) (_ server, promote func() error, err error) {
	primary, ok := old.(*servertest.Database)
	switch {
	case !ok:
		master := old.(redisServer)
		replica := n.newRedis()
		err = replica.Server.Start(append(durable(), "--replicaof", "127.0.0.1", fmt.Sprint(master.Port))...)
		if err == nil && !poll.Holds(time.Minute, func() bool {
			text, err := replica.Ask("INFO", "replication")
			return err == nil && strings.Contains(text, "master_link_status:up")
		}) {
			err = errors.New("the replica does not follow its master")
		}
		return replica, func() error { return replica.order("REPLICAOF", "NO", "ONE") }, err
	case n.kind == Postgres:
		replica := primary.Replica()
		return replica, func() error {
			_, err := query(replica, "SELECT CASE WHEN pg_is_in_recovery() THEN pg_promote() ELSE true END")
			return err
		}, replica.Start()
	}
	replica := n.kind.database()
	if err := replica.Start(); err != nil {
		return replica, nil, err
	}
	_, port, _ := strings.Cut(primary.Addr(), ":")
	written, from, wait := "gtid_binlog_pos", "MASTER_USE_GTID = slave_pos", "MASTER_GTID_WAIT"
	if n.kind == MySQL {
		written, from, wait = "gtid_executed", "MASTER_AUTO_POSITION = 1", "WAIT_FOR_EXECUTED_GTID_SET"
	}
	position, err := query(primary, "SELECT @@GLOBAL."+written)
	if err == nil {
		err = execute(replica, "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = "+port+
			", MASTER_USER = 'root', "+from+", MASTER_CONNECT_RETRY = 1", "START SLAVE")
	}
	if err == nil {
		err = catchUp(replica, "SELECT "+wait+"('"+position+"', 10)", "SELECT @@GLOBAL."+strings.Replace(written, "binlog", "slave", 1))
	}
	return replica, func() error { return execute(replica, "STOP SLAVE", "RESET SLAVE ALL") }, err
}

// catchUp waits until a replica has reached a position, as long as it moves.
func catchUp(replica *servertest.Database, wait, position string) error {
	for before, still := "", 0; still < 6; still++ {
		if reached, err := query(replica, wait); reached == "0" || err != nil {
			return err
		}
		at, err := query(replica, position)
		if err != nil {
			return err
		}
		if at != before {
			before, still = at, 0
		}
	}
	state, err := query(replica, "SHOW SLAVE STATUS")
	return errors.Join(fmt.Errorf("the replica does not follow its primary: %s", state), err)
}

// execute executes statements in a database, one after the other.
func execute(s *servertest.Database, statements ...string) error {
	for _, text := range statements {
		if _, err := query(s, text); err != nil {
			return err
		}
	}
	return nil
}

// query executes a statement in a database, and returns the first row that it
// returns, if any, with its values one after the other.
func query(s *servertest.Database, text string) (value string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	db, err := sql.Open(map[string]string{"PostgreSQL": "pgx", "MariaDB": "mysql", "MySQL": "mysql"}[s.Name], s.DSN(s.Addr()))
	if err != nil {
		return "", err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err == nil && rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		err = rows.Scan(into...)
		for i, v := range values {
			value += strings.Repeat(" ", min(i, 1)) + v.String
		}
	}
	return value, errors.Join(err, rows.Err())
}
