// Account changes the balance of an account, by hand: it shows the balance,
// and writes the one that is typed. Nobody else changes the account meanwhile;
// and if this program was stopped for longer than its lock lasts (Ctrl-Z is
// enough) and somebody else did, its write is refused.
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
	file = flag.String("db", "accounts.db", "the database; it is created if it does not exist")
	id   = flag.Int("id", 1, "the account")
	ttl  = flag.Duration("ttl", 5*time.Second, "time to live of the lock")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends us while we read
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
	db, err := sql.Open("sqlite", "file:"+*file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()
	const schema = `CREATE TABLE IF NOT EXISTS accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, token INTEGER);
		INSERT OR IGNORE INTO accounts VALUES (1, 100, NULL)`
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	accounts, err := fence.NewColumn(fence.SQLite, "accounts", "id", "token")
	if err != nil {
		return err
	}

	lease, err := locks.Lock(ctx, fmt.Sprintf("account/%d", *id), &redlatch.LockOptions{TTL: *ttl})
	if err != nil {
		return err
	}
	defer lease.Release(context.WithoutCancel(ctx))

	// Claim, read, write. From the claim on, holders before us are refused;
	// so what we read stays as it is until we write, or until we are refused.
	if err := accounts.Update(ctx, db, *id, lease.Token(), "balance = balance"); errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("there is no account %d", *id)
	} else if err != nil {
		return err
	}
	var balance int
	if err := db.QueryRowContext(ctx, "SELECT balance FROM accounts WHERE id = ?", *id).Scan(&balance); err != nil {
		return err
	}
	fmt.Printf("the balance is %d; the new one?\n", balance)
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return fmt.Errorf("no balance was typed: %w", err)
	}
	balance, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return err
	}
	// Not on the lease's context: the row itself is the judge of the token, at
	// the moment of the write, which no look at a clock beforehand can be.
	err = accounts.Update(ctx, db, *id, lease.Token(), "balance = ?", balance)
	if errors.Is(err, fence.ErrStale) {
		return fmt.Errorf("nothing is written, the account was changed by another meanwhile: %w", err)
	}
	if err != nil {
		return err
	}
	fmt.Println("written:", balance)
	return nil
}
