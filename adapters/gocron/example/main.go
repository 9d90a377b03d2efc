// Example is a service of which any number of copies run, each with a scheduler
// of gocron. A job runs on one of them; with -lead all jobs run on the leader.
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

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	redlatchgocron "github.com/redlatch/redlatch/adapters/gocron"
)

var (
	list = flag.String("nodes", os.Getenv("REDLATCH_NODES"), "the servers, redis://host:port, with commas between them; or REDLATCH_NODES")
	spec = flag.String("spec", "*/10 * * * * *", "when the job is due, with seconds")
	lead = flag.Bool("lead", false, "run jobs on the leader only")
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
	if *lead {
		return asLeader(ctx, locks)
	}
	return withLocker(ctx, locks)
}

// withLocker has each run on the replica that comes first.
func withLocker(ctx context.Context, locks *redlatch.Client) error {
	// snippet: locker
	locker, err := redlatchgocron.NewLocker(locks, nil)
	if err != nil {
		return err
	}
	s, err := locker.NewScheduler(gocron.WithLocation(time.UTC))
	if err != nil {
		return err
	}
	report := func() {
		fmt.Println("the report is written, token", locker.Lease("report").Token())
	}
	_, err = s.NewJob(gocron.CronJob(*spec, true), gocron.NewTask(report), gocron.WithName("report"))
	// end snippet
	if err != nil {
		return errors.Join(err, s.Shutdown())
	}
	return serve(ctx, s)
}

// asLeader has all runs on one replica, until it stops.
func asLeader(ctx context.Context, locks *redlatch.Client) error {
	// snippet: elector
	elector, err := redlatchgocron.NewElector(locks, "scheduler", nil)
	if err != nil {
		return err
	}
	defer elector.Close()
	s, err := gocron.NewScheduler(gocron.WithLocation(time.UTC), gocron.WithDistributedElector(elector))
	// end snippet
	if err != nil {
		return err
	}
	report := func() { fmt.Println("the leader writes the report") }
	if _, err := s.NewJob(gocron.CronJob(*spec, true), gocron.NewTask(report), gocron.WithName("report")); err != nil {
		return errors.Join(err, s.Shutdown())
	}
	return serve(ctx, s)
}

// serve runs the scheduler until ctx ends, and then waits for running jobs.
func serve(ctx context.Context, s gocron.Scheduler) error {
	s.Start()
	fmt.Println("started")
	<-ctx.Done()
	return s.Shutdown()
}
