package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
)

// Check and writes are one transaction.
func ExampleSQL_Do() {
	db, err := sql.Open("sqlite", "bank.db") // and import _ "modernc.org/sqlite"
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	guard, err := fence.NewSQL(db, fence.SQLite, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := guard.Create(ctx); err != nil {
		log.Fatal(err)
	}
	deposit := func(token redlatch.Token, amount int) error {
		return guard.Do(ctx, "accounts/42", token, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance + ? WHERE id = 42", amount)
			return err
		})
	}

	// Tokens come from Lease.Token. The holder of the first was stopped for
	// so long that another got the lock.
	older, newer := redlatch.Token(1763000000123456), redlatch.Token(1763000009876543)
	fmt.Println(deposit(newer, 5))
	fmt.Println(deposit(older, 1000))
	fmt.Println(deposit(newer, 5))
	// It prints:
	// <nil>
	// redlatch: token 00001763000000123456 is stale: "accounts/42" has seen 00001763000009876543
	// <nil>
}

// A table with a token column of its own needs neither a guard row nor a
// transaction.
func ExampleColumn() {
	db, err := sql.Open("sqlite", "bank.db") // and import _ "modernc.org/sqlite"
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	accounts, err := fence.NewColumn(fence.SQLite, "accounts", "id", "token")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(accounts.Update(ctx, db, 42, 2, "balance = ?", 150))
	fmt.Println(accounts.Update(ctx, db, 42, 1, "balance = ?", 0))
	fmt.Println(errors.Is(accounts.Update(ctx, db, 43, 2, "balance = ?", 0), sql.ErrNoRows))

	// The same in a statement of one's own.
	err = accounts.Exec(ctx, db, 42, 3,
		"UPDATE accounts SET balance = balance - ?, "+accounts.Set(2)+" WHERE id = ? AND "+accounts.Where(4),
		30, 3, 42, 3)
	fmt.Println(err)
	// It prints:
	// <nil>
	// redlatch: token 00000000000000000001 is stale: "accounts/42" has seen 00000000000000000002
	// true
	// <nil>
}
