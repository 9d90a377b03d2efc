//go:build unix

package redlatchcron_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlatch/redlatch"
	redlatchcron "github.com/redlatch/redlatch/adapters/cron"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/memory"
)

// A job that any number of replicas schedule, and one of them runs.
func ExampleJobs_AddFunc() {
	one, two, three, stop := servertest.Example()
	defer stop()

	// These servers are brand-new. Those in production are marked once, by
	// redlatch init.
	locks, err := redlatch.Open(one+","+two+","+three, &redlatch.Options{AssumeFresh: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	done := make(chan struct{})
	first := sync.OnceFunc(func() { close(done) }) // one run is enough for this example
	report := func(due time.Time, token redlatch.Token) error { first(); return nil }
	// snippet: jobs
	c := cron.New()
	jobs, err := redlatchcron.New(c, locks, nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = jobs.AddFunc("report", "@every 1s", func(ctx context.Context, lease *redlatch.Lease) error {
		return report(redlatchcron.Due(ctx), lease.Token()) // after an error another replica tries
	})
	if err != nil {
		log.Fatal(err)
	}
	c.Start()
	// end snippet
	<-done
	<-c.Stop().Done()
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
