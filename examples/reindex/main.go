// Reindex rebuilds an index, batch by batch, which takes hours. It holds the lock
// of the index, and hands it over between two batches if another client waits.
// Each batch stores its progress, so the next holder continues there. With -add
// it adds one document now, which takes the lock for a moment.
//
// Do not start it twice: two jobs that both hand over alternate for ever, every
// quarter of a second. A lock of another name around the job prevents that.
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
	file    = flag.String("db", "index.db", "the database; it is created if it does not exist")
	add     = flag.String("add", "", "add this document and exit")
	batches = flag.Int("batches", 100_000, "how many batches the index has")
	takes   = flag.Duration("takes", 20*time.Millisecond, "how long a batch takes")
	ttl     = flag.Duration("ttl", 5*time.Second, "time to live of the lock")
)

const schema = `
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY, next INTEGER NOT NULL, token INTEGER);
CREATE TABLE IF NOT EXISTS parts (batch INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS documents (text TEXT NOT NULL);
INSERT OR IGNORE INTO progress VALUES (1, 0, NULL)`

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
	db, err := sql.Open("sqlite", "file:"+*file+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	progress, err := fence.NewColumn(fence.SQLite, "progress", "id", "token")
	if err != nil {
		return err
	}
	x := &index{db, progress}
	opts := redlatch.LockOptions{TTL: *ttl}
	if *add != "" {
		return locks.Do(ctx, "index", &opts, x.add)
	}
	for done := false; !done; {
		// After a hand-over, Do waits behind those that wait already.
		err := locks.Do(ctx, "index", &opts, func(ctx context.Context, lease *redlatch.Lease) (err error) {
			done, err = x.reindex(ctx, lease)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil // the next start continues where this one was
		case errors.Is(err, redlatch.ErrLost), errors.Is(err, fence.ErrStale):
			log.Print(err) // and it waits for the lock again
		case err != nil:
			return err
		}
	}
	fmt.Println("done")
	return nil
}

// index is the index, with a row that says how far it is built.
type index struct {
	db       *sql.DB
	progress *fence.Column
}

// reindex does batches until all are done, until somebody wants the lock, or
// until ctx ends.
func (x *index) reindex(ctx context.Context, lease *redlatch.Lease) (done bool, err error) {
	// Claim, then read: no term before this one can write any more.
	if err := x.progress.Update(ctx, x.db, 1, lease.Token(), "next = next"); err != nil {
		return false, err
	}
	var next int
	if err := x.db.QueryRowContext(ctx, "SELECT next FROM progress WHERE id = 1").Scan(&next); err != nil {
		return false, err
	}
	fmt.Println("from batch", next)
	contended := lease.Contended()
	for ; next < *batches; next++ {
		if err := x.batch(ctx, next, lease.Token()); err != nil {
			return false, err
		}
		select {
		case <-contended:
			fmt.Println("handing over after batch", next)
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		default:
		}
	}
	return true, nil
}

// batch writes one part of the index, and how far we are, in one transaction.
func (x *index) batch(ctx context.Context, number int, token redlatch.Token) error {
	time.Sleep(*takes) // the work
	return x.write(ctx, token, "next = ?", number+1, "INSERT INTO parts VALUES (?)", number)
}

// add adds a document.
func (x *index) add(ctx context.Context, lease *redlatch.Lease) error {
	err := x.write(ctx, lease.Token(), "next = next + ?", 0, "INSERT INTO documents VALUES (?)", *add)
	if err == nil {
		fmt.Println("added", *add)
	}
	return err
}

// write changes the progress and executes a statement, unless the token is stale.
func (x *index) write(ctx context.Context, token redlatch.Token, set string, value int, query string, args ...any) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := x.progress.Update(ctx, tx, 1, token, set, value); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return err
	}
	return tx.Commit()
}
