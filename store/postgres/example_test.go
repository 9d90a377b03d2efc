package postgres_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/postgres"
)

// Locks in a table of a database, with connections of their own.
func ExampleOpen() {
	node, err := postgres.Open("postgres://locks@db/shop", nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// Locks over a pool that the program has.
func ExampleFrom() {
	pool, err := pgxpool.New(context.Background(), "postgres://locks@db/shop")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	node, err := postgres.From(pool, &postgres.Options{Table: "shop_locks"})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// The table can be created by somebody else than the user of the locks.
func ExampleSchema() {
	statements, err := postgres.Schema("shop_locks")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(statements, "CREATE TABLE"), strings.Contains(statements, "GRANT"))
	// Output:
	// true true
}
