package goredis_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	client "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/store/redis/goredis"
)

// Three independent servers: a lock is valid while a majority has it.
func ExampleNodes() {
	nodes, err := goredis.Nodes("redis://a:6379", "redis://b:6379", "redis://user:password@c:6379")
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// A master that Sentinel manages. What the library logs goes to the program's
// logger.
func ExampleOpen() {
	goredis.LogTo(slog.Default())
	node, err := goredis.Open("redis+sentinel://s1+s2+s3/master", nil)
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
	theirs := client.NewClient(&client.Options{Addr: "a:6379"})
	defer theirs.Close()
	node, err := goredis.From(theirs, &goredis.Options{Name: "redis://a:6379"})
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
	theirs := client.NewClient(&client.Options{Addr: "a:6379"})
	defer theirs.Close()
	driver, err := goredis.Driver(theirs)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := fence.NewRedis(driver, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(guard.Check(context.Background(), "orders/42", 1763000000123456)) // the token comes from Lease.Token
}
