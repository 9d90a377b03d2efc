// Leader is a service of which any number of copies run and one leads. When
// the leader is told to stop, the next in line leads at once; when it dies,
// after the time to live of its lock.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redis/direct"
	"github.com/redlatch/redlatch/sqlite"
)

var ttl = flag.Duration("ttl", 5*time.Second, "how long a dead leader is waited for")

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
	nodes, err := nodes()
	if err != nil {
		return err
	}
	locks, err := redlatch.New(nodes, redlatch.Options{})
	if err != nil {
		return err
	}
	defer locks.Close()

	fmt.Println("following")
	err = locks.Lead(ctx, "scheduler", redlatch.LockOptions{TTL: *ttl}, lead)
	if ctx.Err() != nil {
		// Told to stop. Lead has released the lock, and that woke the next in
		// line.
		return nil
	}
	return err
}

// lead does the leader's work until ctx ends: because the service is told to
// stop, because the lock is lost, or because it was held for MaxHold, a day.
func lead(ctx context.Context, lease *redlatch.Lease) error {
	fmt.Println("leading, token", lease.Token())
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); errors.Is(cause, redlatch.ErrLost) {
				fmt.Println("no longer the leader:", cause) // Lead stands again
			}
			return nil
		case <-tick.C:
			schedule(ctx, lease.Token())
		}
	}
}

// schedule stands for the work. It hands the token to whatever it writes to,
// so that a leader that was paused and does not know of its successor is
// refused there.
func schedule(_ context.Context, token redlatch.Token) {
	fmt.Println("scheduling with token", token)
}

// nodes returns the servers of REDLATCH_NODES, or else a file of this machine.
func nodes() ([]redlatch.Node, error) {
	if list := os.Getenv("REDLATCH_NODES"); list != "" {
		return direct.Nodes(strings.Split(list, ",")...)
	}
	path, err := sqlite.DefaultPath()
	if err != nil {
		return nil, err
	}
	node, err := sqlite.Open(path)
	if err != nil {
		return nil, err
	}
	return []redlatch.Node{node}, nil
}
