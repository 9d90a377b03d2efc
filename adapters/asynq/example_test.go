//go:build unix

package redlatchasynq_test

import (
	"context"
	"fmt"
	"log"

	"github.com/hibiken/asynq"

	"github.com/redlatch/redlatch"
	redlatchasynq "github.com/redlatch/redlatch/adapters/asynq"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// A scheduler that runs in one process of many.
func ExampleRun() {
	a, b, c, end := servertest.Example()
	defer end()

	// These servers are brand-new. Those in production are marked once, by
	// redlatch init.
	locks, err := redlatch.Open(a+","+b+","+c, &redlatch.Options{AssumeFresh: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	queue, err := asynq.ParseRedisURI(a)
	if err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	opts := &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel, PostEnqueueFunc: func(info *asynq.TaskInfo, err error) {
		fmt.Println("enqueued:", info.Type)
		stop() // one task is enough for this example
	}}
	// snippet: run
	err = redlatchasynq.Run(ctx, locks, "scheduler", nil, func(*redlatch.Lease) (redlatchasynq.Scheduler, error) {
		s := asynq.NewScheduler(queue, opts)
		_, err := s.Register("@every 1s", asynq.NewTask("report", nil))
		return s, err
	})
	// end snippet
	fmt.Println("error:", err)
	// Output:
	// enqueued: report
	// error: <nil>
}
