// Example is a service of which any number of copies run, each with a scheduler
// of robfig/cron. Each time the job is due, one of them runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlatch/redlatch"
	redlatchcron "github.com/redlatch/redlatch/adapters/cron"
)

var (
	list = flag.String("nodes", os.Getenv("REDLATCH_NODES"), "the servers, redis://host:port, with commas between them; or REDLATCH_NODES")
	spec = flag.String("spec", "*/10 * * * * *", "when the job is due, with seconds")
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
	if *list == "" {
		return errors.New("no servers: set REDLATCH_NODES or -nodes")
	}
	// A job every few seconds would leave many marks in a week.
	locks, err := redlatch.Open(*list, &redlatch.Options{CompletedRetention: time.Hour})
	if err != nil {
		return err
	}
	defer locks.Close()

	// snippet: jobs
	c := cron.New(cron.WithSeconds(), cron.WithLocation(time.UTC))
	jobs, err := redlatchcron.New(c, locks, &redlatchcron.Options{Context: ctx})
	if err != nil {
		return err
	}
	if _, err := jobs.AddFunc("report", *spec, report); err != nil {
		return err
	}
	c.Start()
	// end snippet
	fmt.Println("started")
	<-ctx.Done()
	<-c.Stop().Done() // waits for running jobs
	return nil
}

// snippet: report
// report is the work. It may run twice for one time, after a crash between the
// work and the note that it is done: the token says which run is the later one.
func report(ctx context.Context, lease *redlatch.Lease) error {
	fmt.Println("the report of", redlatchcron.Due(ctx).Format(time.TimeOnly), "is written, token", lease.Token())
	return nil
}

// end snippet
