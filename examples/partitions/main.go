// Partitions consumes a log that is split into partitions, each by exactly one
// consumer at a time. Start as many copies as there are machines; when one dies,
// the others continue its partitions where it was. Offset and result are written
// in one transaction that checks the token, so each message is handled once.
package main

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	_ "github.com/redlatch/redlatch/store/sqlite" // for the file
)

var (
	file   = flag.String("db", "partitions.db", "the database with the log")
	create = flag.Bool("create", false, "create the tables, with some messages, and exit")
	most   = flag.Int("most", 4, "the most partitions that one consumer takes: what one machine can handle")
	ttl    = flag.Duration("ttl", 5*time.Second, "another consumer takes the partitions of a dead one after this time")
)

//go:embed schema.sql
var schema string

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
	db, err := sql.Open("sqlite", "file:"+*file+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()
	if *create {
		_, err := db.ExecContext(ctx, schema)
		return err
	}
	var count int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM partitions").Scan(&count); err != nil {
		return fmt.Errorf("%w: -create makes the tables", err)
	}
	// The servers of REDLATCH_NODES, or else a file of this machine.
	locks, err := redlatch.Open(cmp.Or(os.Getenv("REDLATCH_NODES"), "sqlite:"), nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	var workers sync.WaitGroup
	for range *most {
		workers.Go(func() { work(ctx, locks, db, count) })
	}
	workers.Wait()
	return nil
}

// work consumes one partition after the other: whichever is free.
func work(ctx context.Context, locks *redlatch.Client, db *sql.DB, count int) {
	for ctx.Err() == nil {
		for _, p := range rand.Perm(count) {
			opts := redlatch.LockOptions{TTL: *ttl, Wait: redlatch.NoWait}
			err := locks.Do(ctx, fmt.Sprintf("partition/%d", p), &opts, func(ctx context.Context, lease *redlatch.Lease) error {
				return consume(ctx, db, p, lease.Token())
			})
			if err != nil && !errors.Is(err, redlatch.ErrHeld) && ctx.Err() == nil {
				log.Printf("partition %d: %v", p, err)
			}
		}
		wait(ctx, time.Second)
	}
}

// consume handles the messages of a partition in order, until ctx ends. The
// offset is in the partition's row, and so is the token with which it was last
// written: a consumer that was paused and has lost the partition is refused.
func consume(ctx context.Context, db *sql.DB, p int, token redlatch.Token) error {
	rows, err := fence.NewColumn(fence.SQLite, "partitions", "id", "token")
	if err != nil {
		return err
	}
	// Claim first, then read: nobody before us can move the offset any more.
	if err := rows.Update(ctx, db, p, token, "offset = offset"); err != nil {
		return err
	}
	var next int
	if err := db.QueryRowContext(ctx, "SELECT offset FROM partitions WHERE id = ?", p).Scan(&next); err != nil {
		return err
	}
	fmt.Println("partition", p, "is ours from message", next)
	for ctx.Err() == nil {
		var text string
		err := db.QueryRowContext(ctx, "SELECT text FROM messages WHERE part = ? AND id = ?", p, next).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			wait(ctx, 100*time.Millisecond) // nothing new yet
			continue
		}
		if err != nil {
			return err
		}
		if err := handle(ctx, db, rows, p, next, text, token); err != nil {
			return err
		}
		next++
	}
	return nil
}

// handle writes what comes of a message and the offset behind it in one
// transaction, so that either both are there or none.
func handle(ctx context.Context, db *sql.DB, rows *fence.Column, p, id int, text string, token redlatch.Token) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := rows.Update(ctx, tx, p, token, "offset = ?", id+1); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO results VALUES (?, ?, ?, ?)", p, id, strings.ToUpper(text), os.Getpid()); err != nil {
		return err
	}
	return tx.Commit()
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
