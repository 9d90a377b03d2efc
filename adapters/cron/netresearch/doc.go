// Package redlatchnetresearch has the jobs of a netresearch/go-cron scheduler
// run on one of many replicas, with redlatch.
//
//	c := cron.New()
//	jobs, err := redlatchnetresearch.New(c, locks, nil)
//	if err != nil {
//		return err
//	}
//	_, err = jobs.AddFunc("nightly-report", "0 3 * * *", func(ctx context.Context, lease *redlatch.Lease) error {
//		return report(ctx, redlatchnetresearch.Due(ctx), lease.Token())
//	}, cron.WithTags("reports"))
//
// It is package redlatchcron, which is the parent folder and documents how it
// works, for another scheduler. The differences are that this one passes on the
// options of an entry, and the scheduler's context: a cron.JobWithContext gets
// one that ends when the scheduler stops and when the lock is lost. Such a job
// has no error, so it is done when it returns, however early; a Func can return
// one.
package redlatchnetresearch
