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

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// failover replaces a node's server by a replica that lacks its last writes, while
// half of the clients are stopped, each at a moment of its own. So a client may
// have read from the old server, and write to the new one: replies are slow before
// it is stopped, so that it is likely to be waiting for one. The old server does
// not come back, except behind a sentinel.
func failover(w *world, n *node, rng *rand.Rand) strike {
	lag := between(rng, 100*time.Millisecond, 500*time.Millisecond)
	own := rand.New(rand.NewPCG(rng.Uint64(), 0))       // the fault runs on a goroutine of its own
	quarantine := w.bounds.quarantine() + 3*time.Second // time to work in, before the next one
	apply := func(*Fault) error {
		thaw := func() {}
		defer func() { thaw() }()
		return n.promote(func() { thaw = w.stopSome(n, own) }, lag)
	}
	if sentinel, ok := n.current().(*watched); ok {
		quarantine += replicaLag + 2*time.Second
		apply = func(*Fault) error {
			thaw := w.stopSome(n, own)
			time.Sleep(lag)
			return sentinel.failover(own, thaw)
		}
	}
	return strike{detail: fmt.Sprintf("fails over; the last %v are lost, and some clients are stopped", lag.Round(time.Millisecond)), quarantine: quarantine, apply: apply}
}

// slowReply is how long a reply takes before a client is stopped.
const slowReply = 20 * time.Millisecond

// stopSome stops half of the clients, and returns when it is over. The returned
// function lets them go on, each after a while.
func (w *world) stopSome(n *node, rng *rand.Rand) (thaw func()) {
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

// promoteDatabase is promote for a database.
func (n *node) promoteDatabase(before func(), lag time.Duration) error {
	old := n.db()
	replica, promote := old.Replica(), []string{"SELECT CASE WHEN pg_is_in_recovery() THEN pg_promote() END"}
	if n.kind == MariaDB {
		replica, promote = n.kind.database(), []string{"STOP SLAVE", "RESET SLAVE ALL"}
	}
	err := replica.Start()
	if err == nil && n.kind == MariaDB {
		err = follow(replica, old)
	}
	if err == nil {
		before()
		// What the replica receives may cancel a statement.
		err = again(func() error { return execute(replica, promote...) })
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

// follow has a MariaDB server follow another one, and waits until it has its data.
func follow(replica, primary *servertest.Database) error {
	_, port, _ := strings.Cut(primary.Addr(), ":")
	err := execute(replica, "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = "+port+
		", MASTER_USER = 'root', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1", "START SLAVE")
	if err != nil {
		return err
	}
	position, err := query(primary, "SELECT @@GLOBAL.gtid_binlog_pos")
	if err != nil {
		return err
	}
	reached, err := query(replica, "SELECT MASTER_GTID_WAIT('"+position+"', 60)")
	if err == nil && reached != "0" {
		err = errors.New("the replica does not follow its primary")
	}
	return err
}

// execute has a database execute statements, one after the other.
func execute(s *servertest.Database, statements ...string) error {
	for _, text := range statements {
		if err := onDatabase(s, func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, text)
			return err
		}); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// query returns the only value that a statement returns.
func query(s *servertest.Database, text string) (value string, err error) {
	err = onDatabase(s, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, text).Scan(&value)
	})
	return value, err
}

func onDatabase(s *servertest.Database, do func(ctx context.Context, db *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	driver := map[string]string{"PostgreSQL": "pgx", "MariaDB": "mysql"}[s.Name]
	db, err := sql.Open(driver, s.DSN(s.Addr()))
	if err != nil {
		return err
	}
	defer db.Close()
	return do(ctx, db)
}
