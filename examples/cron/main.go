// Cron is a job that cron starts on every machine at the same minute, and that
// runs once a day on one of them.
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

var (
	out = flag.String("out", "report.txt", "the file that the report goes to")
	day = flag.String("day", time.Now().UTC().Format(time.DateOnly), "the day that the report is about")
	ttl = flag.Duration("ttl", 10*time.Second, "another machine takes over from a dead one after this time")
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
	// The servers of REDLATCH_NODES, or else a file of this machine.
	locks, err := redlatch.Open(cmp.Or(os.Getenv("REDLATCH_NODES"), "sqlite:"), nil)
	if err != nil {
		return err
	}
	defer locks.Close()

	// The day is the occurrence: every machine must use the same name, so it is
	// in UTC. Start the job some minutes after midnight UTC, or a machine whose
	// clock is late names the day before.
	opts := redlatch.LockOptions{TTL: *ttl, MaxHold: time.Hour}
	ran, err := locks.Once(ctx, "nightly-report", *day, &opts, func(ctx context.Context, lease *redlatch.Lease) error {
		return report(lease.Token())
	})
	if err != nil {
		return err // not completed: the next machine, or the next start, tries again
	}
	if !ran {
		fmt.Println("not run here: the report of", *day, "is completed")
	}
	return nil
}

// report is the work. It may run twice for one day, after a crash between the
// work and the record of it.
func report(token redlatch.Token) error {
	f, err := os.OpenFile(*out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f, "report of", *day, "with token", token); err != nil {
		return errors.Join(err, f.Close())
	}
	fmt.Println("the report is written")
	return f.Close()
}
