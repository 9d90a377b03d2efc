// Transfer moves money from one account to another, several times. The approval of
// the amount takes a while, so it locks both accounts instead of keeping a
// transaction of the database open. Each account has its own lease and token, and
// both rows change in one transaction: locks do not make two writes one.
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
	file     = flag.String("db", "bank.db", "the database; it is created if it does not exist")
	from     = flag.Int("from", 1, "the account that pays")
	to       = flag.Int("to", 2, "the account that is paid")
	amount   = flag.Int("amount", 10, "how much")
	times    = flag.Int("times", 1, "how often")
	approval = flag.Duration("approval", 10*time.Millisecond, "how long the approval takes")
	ttl      = flag.Duration("ttl", 5*time.Second, "time to live of the locks")
)

const schema = `
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, token INTEGER);
INSERT OR IGNORE INTO accounts VALUES (1, 1000, NULL), (2, 1000, NULL), (3, 1000, NULL), (4, 1000, NULL)`

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
	for range *times {
		if err := transfer(ctx, locks, db, *from, *to, *amount); err != nil {
			return err
		}
	}
	return nil
}

// account returns the name of an account's lock.
func account(id int) string { return fmt.Sprintf("account/%d", id) }

// transfer moves an amount between two accounts.
func transfer(ctx context.Context, locks *redlatch.Client, db *sql.DB, from, to, amount int) error {
	if from == to {
		return errors.New("both accounts are the same")
	}
	// In one call: LockAll sorts the names. Two transfers in opposite directions,
	// each of which locked the account that pays first, would wait for each
	// other.
	leases, err := locks.LockAll(ctx, []string{account(from), account(to)}, &redlatch.LockOptions{TTL: *ttl})
	if err != nil {
		return err
	}
	defer leases.Release(context.WithoutCancel(ctx))
	// It ends when either lock is lost.
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(leases.Context(), func() { cancel(context.Cause(leases.Context())) })()

	rows, err := fence.NewColumn(fence.SQLite, "accounts", "id", "token")
	if err != nil {
		return err
	}
	// Claim both, read both, write both. Each row has the token of its own lock.
	balance := map[int]int{}
	for _, id := range []int{from, to} {
		if err := rows.Update(ctx, db, id, leases.Lease(account(id)).Token(), "balance = balance"); err != nil {
			return fmt.Errorf("account %d: %w", id, err)
		}
		var n int
		if err := db.QueryRowContext(ctx, "SELECT balance FROM accounts WHERE id = ?", id).Scan(&n); err != nil {
			return err
		}
		balance[id] = n
	}
	if err := approve(ctx, balance[from], amount); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	balance[from] -= amount
	balance[to] += amount
	for id, n := range balance {
		if err := rows.Update(ctx, tx, id, leases.Lease(account(id)).Token(), "balance = ?", n); err != nil {
			return fmt.Errorf("account %d: %w", id, err)
		}
	}
	return tx.Commit()
}

// approve is a call to somebody who looks at the balance and decides.
func approve(ctx context.Context, balance, amount int) error {
	if amount > balance {
		return fmt.Errorf("%d is more than the %d that are there", amount, balance)
	}
	fmt.Println("asking for the approval of", amount)
	select {
	case <-time.After(*approval):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
