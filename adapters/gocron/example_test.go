//go:build unix

package redlatchgocron_test

import (
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	redlatchgocron "github.com/redlatch/redlatch/adapters/gocron"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// A job that any number of replicas schedule, and one of them runs.
func ExampleLocker() {
	a, b, c, stop := servertest.Example()
	defer stop()

	// These servers are brand-new. Those in production are marked once, by
	// redlatch init.
	locks, err := redlatch.Open(a+","+b+","+c, &redlatch.Options{AssumeFresh: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	done := make(chan struct{})
	write := sync.OnceFunc(func() { close(done) }) // one run is enough for this example
	// snippet: locker
	locker, err := redlatchgocron.NewLocker(locks, nil)
	if err != nil {
		log.Fatal(err)
	}
	s, err := locker.NewScheduler(gocron.WithLocation(time.UTC))
	if err != nil {
		log.Fatal(err)
	}
	report := func() {
		fmt.Println("the report is written, under the lock of", locker.Lease("report").Name())
		write()
	}
	_, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(report), gocron.WithName("report"), gocron.WithLimitedRuns(1))
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	// end snippet
	<-done
	if err := s.Shutdown(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the report is written, under the lock of report
}

// A scheduler whose jobs run only on the leader.
func ExampleElector() {
	a, b, c, stop := servertest.Example()
	defer stop()

	locks, err := redlatch.Open(a+","+b+","+c, &redlatch.Options{AssumeFresh: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	// snippet: elector
	elector, err := redlatchgocron.NewElector(locks, "scheduler", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer elector.Close()
	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	// end snippet
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	report := func() {
		fmt.Println("the leader writes the report")
		close(done)
	}
	if _, err := s.NewJob(gocron.DurationJob(100*time.Millisecond), gocron.NewTask(report), gocron.WithLimitedRuns(1)); err != nil {
		log.Fatal(err)
	}
	s.Start()
	<-done
	if err := s.Shutdown(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the leader writes the report
}
