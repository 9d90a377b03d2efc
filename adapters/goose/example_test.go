//go:build unix

package redlatchgoose_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/redlatch/redlatch"
	redlatchgoose "github.com/redlatch/redlatch/adapters/goose"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// migrations are usually embedded into the program.
var migrations fs.FS = fstest.MapFS{
	"00001_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (state TEXT);\n-- +goose Down\nDROP TABLE orders;\n")},
}

// A database that one of many copies of a program migrates.
func ExampleLocker() {
	a, b, c, stop := servertest.Example()
	defer stop()

	// These servers are brand-new. Those in production are marked once, by
	// redlatch init.
	locks, err := redlatch.Open(a+","+b+","+c, &redlatch.Options{AssumeFresh: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // in memory each connection is a database of its own

	ctx := context.Background()
	migrate := func() (int, error) {
		// snippet: locker
		locker, err := redlatchgoose.New(locks, "migrate/shop", nil)
		if err != nil {
			return 0, err
		}
		provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithLocker(locker))
		if err != nil {
			return 0, err
		}
		ctx, stop := redlatchgoose.Context(ctx) // ends if the lock is lost
		defer stop()
		applied, err := provider.Up(ctx)
		// end snippet
		return len(applied), err
	}
	for range 2 {
		n, err := migrate()
		fmt.Println(n, "applied, error:", err)
	}
	// Output:
	// 1 applied, error: <nil>
	// 0 applied, error: <nil>
}
