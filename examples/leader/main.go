// Leader is a service of which any number of copies run and one leads. When
// the leader gets a TERM, the next waiter leads at once; when it dies, after the
// TTL of its lock. A shorter TTL is faster, and more sensitive to a slow network.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	_ "github.com/redlatch/redlatch/store/sqlite" // for the file
)

var ttl = flag.Duration("ttl", 5*time.Second, "a dead leader is replaced after this time")

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// The servers of REDLATCH_NODES, or else a file of this machine.
	locks, err := redlatch.Open(cmp.Or(os.Getenv("REDLATCH_NODES"), "sqlite:"), nil)
	if err != nil {
		return err
	}
	defer locks.Close()

	fmt.Println("following")
	err = locks.Lead(ctx, "scheduler", &redlatch.LockOptions{TTL: *ttl}, lead)
	if ctx.Err() != nil {
		// A signal. Lead has released the lock, which notified the next waiter.
		return nil
	}
	return err
}

// lead does the leader's work until ctx ends: because of a signal, because the
// lock is lost, or because it was held for MaxHold, a day.
func lead(ctx context.Context, lease *redlatch.Lease) error {
	fmt.Println("leading, token", lease.Token())
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); errors.Is(cause, redlatch.ErrLost) {
				fmt.Println("no longer the leader:", cause) // Lead campaigns again
			}
			return nil
		case <-tick.C:
			schedule(ctx, lease.Token())
		}
	}
}

// schedule is a placeholder for the work. It passes the token to everything it
// writes to, which then refuses a leader that was paused and was replaced.
func schedule(_ context.Context, token redlatch.Token) {
	fmt.Println("scheduling with token", token)
}
