package mysql_test

import (
	"database/sql"
	"fmt"
	"log"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/mysql"
)

// Locks in a table of a database, with connections of their own.
func ExampleOpen() {
	node, err := mysql.Open("mysql://locks@db:3306/shop", nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// Locks over a database that the program has open.
func ExampleFrom() {
	db, err := sql.Open("mysql", "locks@tcp(db:3306)/shop")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	node, err := mysql.From(db, &mysql.Options{Name: "shop"})
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
	statements, err := mysql.Schema("shop_locks")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(statements, "CREATE TABLE"), strings.Contains(statements, "GRANT"))
	// Output:
	// true true
}
