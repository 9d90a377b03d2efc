// Quickstart runs one piece of work under a lock: of all copies of this
// program, on all machines, one does the work at a time.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redlatch/redlatch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// snippet: lock
	// One server, or three or five independent ones: then a minority may fail.
	locks, err := redlatch.Open("redis://127.0.0.1:6379", nil)
	if err != nil {
		return err
	}
	defer locks.Close()

	return locks.Do(ctx, "orders/42", nil, func(ctx context.Context, lease *redlatch.Lease) error {
		// The lock is extended while this runs. If that fails, ctx ends
		// before another client can acquire the lock.
		return work(ctx, lease.Token())
	})
	// end snippet
}

// work is a placeholder for a write to a store that refuses a token lower than
// the highest it has seen.
func work(ctx context.Context, token redlatch.Token) error {
	select {
	case <-time.After(time.Second):
		fmt.Printf("written with token %d\n", token)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
