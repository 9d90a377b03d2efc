//go:build unix

package redlatchcron_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/robfig/cron/v3"

	"github.com/redlatch/redlatch"
	redlatchcron "github.com/redlatch/redlatch/adapters/cron"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/memory"
)

// A job that any number of replicas schedule, and one of them runs.
func ExampleJobs_AddFunc() {
	a, b, c, stop := servertest.Example()
	defer stop()

	// These servers are brand-new. Those in production are marked once, by
	// redlatch init.
	locks, err := redlatch.Open(a+","+b+","+c, &redlatch.Options{AssumeFresh: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	scheduler, done := cron.New(), make(chan struct{})
	jobs, err := redlatchcron.New(scheduler, locks, nil)
	if err != nil {
		log.Fatal(err)
	}
	first := sync.OnceFunc(func() { close(done) }) // one is enough for this example
	_, err = jobs.AddFunc("report", "@every 1s", func(ctx context.Context, lease *redlatch.Lease) error {
		first()
		return nil // or an error: then another replica tries
	})
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	<-done
	<-scheduler.Stop().Done()
	fmt.Println("the report is written")
	// Output:
	// the report is written
}

// A job in a chain with other wrappers. The one that recovers panics is around
// the lock.
func ExampleJobs_Wrapper() {
	// Locks in this process alone, as in tests.
	locks, err := redlatch.New([]redlatch.Node{memory.New(nil)}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	scheduler := cron.New()
	jobs, err := redlatchcron.New(scheduler, locks, nil)
	if err != nil {
		log.Fatal(err)
	}
	schedule, err := cron.ParseStandard("0 3 * * *")
	if err != nil {
		log.Fatal(err)
	}
	once, err := jobs.Wrapper("nightly-report", schedule)
	if err != nil {
		log.Fatal(err)
	}
	report := cron.FuncJob(func() { fmt.Println("the report is written") })
	id := scheduler.Schedule(schedule, cron.NewChain(cron.Recover(cron.DefaultLogger), once).Then(report))

	// Started twice, it runs once for the last time that it was due.
	scheduler.Entry(id).WrappedJob.Run()
	scheduler.Entry(id).WrappedJob.Run()
	// Output:
	// the report is written
}
