package rueidis_test

import (
	"context"
	"fmt"
	"log"

	client "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

// Three independent servers: a lock is valid while a majority has it.
func ExampleNodes() {
	nodes, err := rueidis.Nodes("redis://a:6379", "redis://b:6379", "redis://user:password@c:6379")
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// A master that Sentinel manages.
func ExampleOpen() {
	node, err := rueidis.Open("redis+sentinel://s1+s2+s3/master", nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// Locks over a client that the program has.
func ExampleFrom() {
	theirs, err := client.NewClient(client.ClientOption{InitAddress: []string{"a:6379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer theirs.Close()
	node, err := rueidis.From(theirs, &rueidis.Options{Name: "redis://a:6379"})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// The fence of a resource over a client that the program has.
func ExampleDriver() {
	theirs, err := client.NewClient(client.ClientOption{InitAddress: []string{"a:6379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer theirs.Close()
	driver, err := rueidis.Driver(theirs)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := fence.NewRedis(driver, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = guard.Check(context.Background(), "orders/42", 1763000000123456) // the token comes from Lease.Token
	fmt.Println(err)
}
