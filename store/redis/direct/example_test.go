//go:build unix

package direct_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// Three independent servers: a lock is valid while a majority has it.
func ExampleNodes() {
	a, b, c, stop := servertest.Example()
	defer stop()

	nodes, err := direct.Nodes(a, b, c) // redis://host:port, or with a password redis://user:password@host:port
	if err != nil {
		log.Fatal(err)
	}
	// These servers are brand-new. Those in production are marked once, by
	// redlatch init, which waits until they are trusted.
	locks, err := redlatch.New(nodes, &redlatch.Options{AssumeFresh: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.Lock(context.Background(), "orders/42", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(context.Background())
	fmt.Println("locked", lease.Name())
	// Output:
	// locked orders/42
}

// One node with options of its own.
func ExampleOpen() {
	node, err := direct.Open("rediss://locks:secret@a:6379", &direct.Options{Name: "a"})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
