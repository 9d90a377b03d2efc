//go:build unix

package rueidis_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

// Three independent servers: a lock is valid while a majority has it.
func ExampleNodes() {
	a, b, c, stop := servertest.Example()
	defer stop()

	nodes, err := rueidis.Nodes(a, b, c) // redis://host:port, or with a password redis://user:password@host:port
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
