// Schema is a service of which many copies start at once. Whichever comes first
// brings the database to the schema that this version needs; the others wait
// for that, and then serve.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	_ "github.com/redlatch/redlatch/store/sqlite" // for the file
)

var (
	file = flag.String("db", "shop.db", "the database; it is created if it does not exist")
	ttl  = flag.Duration("ttl", 10*time.Second, "another copy takes over from a dead one after this time")
	slow = flag.Duration("slow", 0, "how long to wait before each step, to have time to watch")
)

// steps lead from an empty database to the present schema. New ones are added
// at the end.
var steps = []string{
	`CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL)`,
	`ALTER TABLE orders ADD COLUMN total INTEGER NOT NULL DEFAULT 0`,
	`CREATE INDEX orders_by_state ON orders (state)`,
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// The servers of REDLATCH_NODES, or else a file of this machine.
	locks, err := redlatch.Open(cmp.Or(os.Getenv("REDLATCH_NODES"), "sqlite:"), nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	db, err := sql.Open("sqlite", "file:"+*file+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()

	err = locks.Do(ctx, "schema/shop", &redlatch.LockOptions{TTL: *ttl, MaxHold: time.Hour}, func(ctx context.Context, lease *redlatch.Lease) error {
		return migrate(ctx, db, lease.Token())
	})
	if err != nil {
		return err // do not serve: the schema may be that of another version
	}
	fmt.Println("serving with schema", len(steps))
	return nil
}

// migrate takes the steps that are missing. Each is one transaction with its
// version and with the check of the token: after a crash the next holder
// continues where this one ended, and a holder that was paused in between and
// is late changes nothing.
func migrate(ctx context.Context, db *sql.DB, token redlatch.Token) error {
	guard, err := fence.NewSQL(db, fence.SQLite, nil)
	if err != nil {
		return err
	}
	if err := guard.Create(ctx); err != nil {
		return err
	}
	for {
		done := 0
		err := guard.Do(ctx, "schema/shop", token, func(tx *sql.Tx) error {
			if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&done); err != nil || done >= len(steps) {
				return err
			}
			select {
			case <-time.After(*slow):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if _, err := tx.ExecContext(ctx, steps[done]); err != nil {
				return fmt.Errorf("step %d: %w", done+1, err)
			}
			_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", done+1))
			return err
		})
		switch {
		case errors.Is(err, fence.ErrStale):
			return fmt.Errorf("another has taken over: %w", err)
		case err != nil:
			return err
		case done > len(steps):
			return fmt.Errorf("the database has schema %d, and this version knows %d: it is too old", done, len(steps))
		case done == len(steps):
			return nil
		}
		fmt.Println("step", done+1, "is done")
	}
}
