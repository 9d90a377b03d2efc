package redsync_test

import (
	"context"
	"log"
	"time"

	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/redsync"
)

// A program of redsync changes one import, and keeps its pools.
func ExampleNew() {
	pool := goredis.NewPool(client.NewClient(&client.Options{Addr: "a:6379"}))
	mutex := redsync.New(pool).NewMutex("orders/42", redsync.WithExpiry(8*time.Second))
	if err := mutex.Lock(); err != nil {
		log.Fatal(err)
	}
	defer mutex.Unlock()
}

// Options of redlatch, here the restart guard.
func ExampleNewWithOptions() {
	pool := goredis.NewPool(client.NewClient(&client.Options{Addr: "a:6379"}))
	rs := redsync.NewWithOptions(&redlatch.Options{Guard: redlatch.GuardOn, Cluster: redlatch.Cluster{Membership: "shop"}}, pool)
	defer rs.Close()
}

// Servers by their addresses, with connections of its own: waiters are notified.
func ExampleOpen() {
	rs := redsync.Open(nil, "redis://a:6379", "redis://b:6379", "redis://c:6379")
	defer rs.Close()
	mutex := rs.NewMutex("orders/42")
	if err := mutex.LockContext(context.Background()); err != nil {
		log.Fatal(err)
	}
	defer mutex.Unlock()
}
