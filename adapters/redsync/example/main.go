// Example is a program that was written for redsync and runs with redlatch: one
// import is another one.
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
	"time"

	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"

	// Was github.com/go-redsync/redsync/v4.
	"github.com/redlatch/redlatch/adapters/redsync"
)

var servers = flag.String("servers", "127.0.0.1:6379", "host:port of the servers, with commas in between")

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Split(*servers, ",")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addresses []string) error {
	// snippet: lock
	var pools []redis.Pool
	for _, address := range addresses {
		client := goredislib.NewClient(&goredislib.Options{Addr: address})
		defer client.Close()
		pools = append(pools, goredis.NewPool(client))
	}
	rs := redsync.New(pools...)

	mutex := rs.NewMutex("orders/42", redsync.WithExpiry(8*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		var taken *redsync.ErrTaken
		if errors.As(err, &taken) {
			fmt.Println(taken.Cause) // who has it, and when it expires
		}
		return err
	}
	defer mutex.UnlockContext(context.WithoutCancel(ctx))
	// end snippet

	return work(ctx, mutex)
}

// work is a placeholder. It takes longer than the expiry, so it extends the
// lock, as with redsync.
func work(ctx context.Context, mutex *redsync.Mutex) error {
	for range 5 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
		if ok, err := mutex.ExtendContext(ctx); !ok {
			return err
		}
		fmt.Println("working, with token", mutex.Lease().Token(), "until", mutex.Until().Format(time.TimeOnly))
	}
	return nil
}
