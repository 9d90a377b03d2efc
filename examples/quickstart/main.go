// Quickstart runs one piece of work under a lock, so that of all the copies of
// this program, on whichever machines, one does it at a time.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redis/rueidis"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// One server, or three or five independent ones for a lock that outlives
	// the failure of a minority.
	nodes, err := rueidis.Nodes("redis://127.0.0.1:6379")
	if err != nil {
		return err
	}
	locks, err := redlatch.New(nodes, redlatch.Options{})
	if err != nil {
		return err
	}
	defer locks.Close()

	opts := redlatch.LockOptions{TTL: 5 * time.Second, Wait: time.Minute}
	return locks.Do(ctx, "orders/42", opts, func(ctx context.Context, lease *redlatch.Lease) error {
		// The lock is extended for as long as this runs. If it is lost, ctx
		// ends before anybody else can have it.
		fmt.Printf("%s is ours, token %d\n", lease.Name(), lease.Token())
		return work(ctx, lease.Token())
	})
}

// work stands for writing to a store that refuses a token lower than one it
// has seen.
func work(ctx context.Context, token redlatch.Token) error {
	select {
	case <-time.After(time.Second):
		fmt.Printf("written with token %d\n", token)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
