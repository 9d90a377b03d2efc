// Package redlatchcron has the jobs of a robfig/cron scheduler run on one of
// many replicas, with redlatch.
//
// Each replica adds the same jobs to its scheduler, by way of Jobs:
//
//	c := cron.New()
//	jobs, err := redlatchcron.New(c, locks, nil)
//	if err != nil {
//		return err
//	}
//	_, err = jobs.AddFunc("nightly-report", "0 3 * * *", func(ctx context.Context, lease *redlatch.Lease) error {
//		return report(ctx, redlatchcron.Due(ctx), lease.Token())
//	})
//	if err != nil {
//		return err
//	}
//	c.Start()
//
// For each time at which a job is due, one replica runs it, under a lock that is
// extended while it runs. The others wait. When it is done they return. If it
// failed, or its replica died, the next of them runs it, for the same time. So
// runs of a job never overlap, on whatever replicas, and never for different
// times either.
//
// What is done is noted on the nodes, with redlatch.Client.Once, under the time
// for which the job was due. The scheduler passes that to no job, so it is worked
// out from the schedule: the last time up to now. It does not matter how far the
// clocks of the replicas are apart, nor by how much a replica is late, as long as
// the job is not due again meanwhile.
//
// A schedule such as @every 10m counts from the start of the process, and is due
// at other times on each replica. Such a job runs once in each period; periods of
// a given length begin at the same moments everywhere.
//
// A job that is started by hand, with cron.Entry.WrappedJob.Run, runs for the
// last time at which it was due, and does not run if that is done.
//
// Nodes remember each run for a week. For jobs that run every few seconds, set
// redlatch.Options.CompletedRetention to an hour.
//
// A job runs at least once for each time, not exactly once: see Client.Once. Make
// it harmless to repeat, or pass the lease's token to what it writes to.
package redlatchcron
