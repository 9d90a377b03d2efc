//go:build unix

package redlatchnetresearch_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/netresearch/go-cron"

	"github.com/redlatch/redlatch"
	redlatchnetresearch "github.com/redlatch/redlatch/adapters/cron/netresearch"
	"github.com/redlatch/redlatch/internal/test/servertest"
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
	jobs, err := redlatchnetresearch.New(scheduler, locks, nil)
	if err != nil {
		log.Fatal(err)
	}
	first := sync.OnceFunc(func() { close(done) }) // one is enough for this example
	_, err = jobs.AddFunc("report", "@every 1s", func(ctx context.Context, lease *redlatch.Lease) error {
		log.Println("the report of", redlatchnetresearch.Due(ctx))
		first()
		return nil // or an error: then another replica tries
	}, cron.WithTags("reports"))
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
