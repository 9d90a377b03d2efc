// Cron is a job that cron starts on every machine at the same minute, and that
// runs on one of them.
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
	"github.com/redlatch/redlatch/redis/rueidis"
	"github.com/redlatch/redlatch/sqlite"
)

var (
	out  = flag.String("out", "report.txt", "the file that the report goes to")
	hold = flag.Duration("hold", time.Minute, "keep the lock for so long at the least: longer than the machines' clocks are apart")
)

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

	// A second of waiting, since of several that ask at the very same moment
	// none might get a majority at the first try.
	opts := redlatch.LockOptions{Wait: time.Second, MaxHold: time.Hour}
	err = locks.Do(ctx, "nightly-report", opts, func(ctx context.Context, lease *redlatch.Lease) error {
		began := time.Now()
		if err := report(lease.Token()); err != nil {
			return err // and the lock is free for whoever comes next
		}
		// A job that is done in no time would let in the machine whose clock
		// is late: it would find the lock free, and do it all again.
		select {
		case <-time.After(*hold - time.Since(began)):
		case <-ctx.Done():
		}
		return nil
	})
	var held *redlatch.HeldError
	if errors.As(err, &held) {
		fmt.Println("not run here:", held)
		return nil
	}
	return err
}

// report stands for the work.
func report(token redlatch.Token) error {
	f, err := os.OpenFile(*out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f, "report with token", token); err != nil {
		return errors.Join(err, f.Close())
	}
	fmt.Println("the report is written")
	return f.Close()
}

// nodes returns the servers of REDLATCH_NODES, or else a file of this machine.
func nodes() ([]redlatch.Node, error) {
	if list := os.Getenv("REDLATCH_NODES"); list != "" {
		return rueidis.Nodes(strings.Split(list, ",")...)
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
