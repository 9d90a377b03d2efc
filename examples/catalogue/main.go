// Catalogue is a price that many read and one rewrites. A reader is shown the
// price and types how many it orders; the price does not change in between. With
// -rewrite it is shown the price and types the new one; then it proofreads the
// new catalogue as one of its readers.
package main

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	_ "github.com/redlatch/redlatch/store/sqlite" // for the file
)

var (
	file    = flag.String("db", "catalogue.db", "the database; it is created if it does not exist")
	rewrite = flag.Bool("rewrite", false, "rewrite the catalogue")
	ttl     = flag.Duration("ttl", 5*time.Second, "time to live of the lock")
)

// The columns token_reader and token_writer are for readers: see fence.Column.
const schema = `
CREATE TABLE IF NOT EXISTS catalogue (id INTEGER PRIMARY KEY, edition INTEGER NOT NULL, price INTEGER NOT NULL,
	token INTEGER, token_reader INTEGER, token_writer INTEGER);
CREATE TABLE IF NOT EXISTS orders (count INTEGER NOT NULL, edition INTEGER NOT NULL, price INTEGER NOT NULL);
INSERT OR IGNORE INTO catalogue (id, edition, price) VALUES (1, 1, 300)`

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends us while we read
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// shop is what both readers and writers need.
type shop struct {
	db      *sql.DB
	row     *fence.Column
	answers *bufio.Reader
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
	row, err := fence.NewColumn(fence.SQLite, "catalogue", "id", "token")
	if err != nil {
		return err
	}
	s := &shop{db, row, bufio.NewReader(os.Stdin)}

	// Readers hold the lock together. A writer holds it alone; while it waits,
	// no reader that comes later overtakes it.
	lease, err := locks.Lock(ctx, "catalogue", &redlatch.LockOptions{TTL: *ttl, Shared: !*rewrite})
	if err != nil {
		return err
	}
	defer lease.Release(context.WithoutCancel(ctx))
	if *rewrite {
		err = s.rewrite(ctx, lease)
	} else {
		err = s.order(ctx, lease)
	}
	if errors.Is(err, fence.ErrStale) {
		return fmt.Errorf("nothing is written, this process was paused for too long: %w", err)
	}
	return err
}

// order shows the price, and orders at that price. Each step is refused if the
// catalogue was rewritten after we lost the lock.
func (s *shop) order(ctx context.Context, lease *redlatch.Lease) error {
	edition, price, err := s.read(ctx, lease.Token())
	if err != nil {
		return err
	}
	count, err := s.ask(fmt.Sprintf("edition %d: the price is %d; how many?", edition, price))
	if err != nil {
		return err
	}
	err = s.reading(ctx, lease.Token(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?, ?, ?)", count, edition, price)
		return err
	})
	if err == nil {
		fmt.Printf("ordered %d at %d\n", count, price)
	}
	return err
}

// rewrite changes the price. It is refused if another has written, or read, after
// we lost the lock.
func (s *shop) rewrite(ctx context.Context, lease *redlatch.Lease) error {
	// Claim, read, write.
	if err := s.row.Update(ctx, s.db, 1, lease.Token(), "price = price"); err != nil {
		return err
	}
	var price int
	if err := s.db.QueryRowContext(ctx, "SELECT price FROM catalogue WHERE id = 1").Scan(&price); err != nil {
		return err
	}
	price, err := s.ask(fmt.Sprintf("the price is %d; the new one?", price))
	if err != nil {
		return err
	}
	if err := s.row.Update(ctx, s.db, 1, lease.Token(), "edition = edition + 1, price = ?", price); err != nil {
		return err
	}
	// Readers are let in from here on, and no writer before we are done: what
	// we proofread is what they read. The token is a reader's now.
	if err := lease.Downgrade(ctx); err != nil {
		return err
	}
	edition, price, err := s.read(ctx, lease.Token())
	if err != nil {
		return err
	}
	fmt.Printf("written: edition %d, price %d; press Enter when you have proofread it\n", edition, price)
	_, err = s.answers.ReadString('\n')
	return err
}

// read returns the catalogue to a reader.
func (s *shop) read(ctx context.Context, token redlatch.Token) (edition, price int, err error) {
	err = s.reading(ctx, token, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT edition, price FROM catalogue WHERE id = 1").Scan(&edition, &price)
	})
	return edition, price, err
}

// reading runs f in a transaction that begins with the check of a reader's
// token. From then on a writer before us is refused.
func (s *shop) reading(ctx context.Context, token redlatch.Token, f func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := s.row.CheckRead(ctx, tx, 1, token); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// ask prints a question and returns the number that is typed.
func (s *shop) ask(question string) (int, error) {
	fmt.Println(question)
	line, err := s.answers.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("nothing was typed: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(line))
}
