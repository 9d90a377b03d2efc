// Package redlatchgocron runs the jobs of a gocron scheduler on one of many
// replicas, with redlatch. It has a gocron.Locker and a gocron.Elector.
//
// # Locker
//
// With a Locker each job runs once for each time at which it is scheduled, on the
// replica that comes first:
//
//	locker, err := redlatchgocron.NewLocker(locks, nil)
//	if err != nil {
//		return err
//	}
//	s, err := locker.NewScheduler()
//	if err != nil {
//		return err
//	}
//	_, err = s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(report), gocron.WithName("nightly-report"))
//
// The lock's name is the job's. Set it with gocron.WithName: gocron's default is
// the name of the function, which a new version of the program may change. No
// two jobs of a scheduler may have the same name.
//
// The lock is extended while the job runs. A replica that finds it held skips
// the job. It asks for a second, because replicas that ask several nodes at the
// same moment can each get some of them.
//
// A lock alone is not enough: if the job takes less time than the clocks are
// apart, the second replica finds the lock free. So the locker notes on the
// nodes that the job ran, with redlatch.Client.Once. What it notes is the time
// for which the job was scheduled. gocron passes that to no locker, so the
// locker asks the scheduler: NewScheduler and Bind say which. It is right
// however far the clocks are apart, and for jobs of any period, which a lock
// that is kept for some seconds after the job is not.
//
// Jobs that count from the start of their process, gocron.DurationJob and
// gocron.DurationRandomJob without a common start, are due at other times on
// each replica. They run once in each period instead; periods of a given length
// begin at the same moments everywhere.
//
// gocron does not pass on how a job ended. A job that returned an error or
// panicked is noted as run. If the replica dies while the job runs, it is not,
// and another replica that waits runs it; by default none waits, and the next
// run is the next one on the schedule. Set Options.Lock.Wait to have replicas
// wait.
//
// Nodes remember each run for a week. For jobs that run every few seconds, set
// redlatch.Options.CompletedRetention to an hour.
//
// # Elector
//
// With an Elector all jobs of a scheduler run on one replica, the leader:
//
//	elector, err := redlatchgocron.NewElector(locks, "scheduler", nil)
//	if err != nil {
//		return err
//	}
//	defer elector.Close()
//	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
//
// A replica leads only while its lease is valid. If the leader dies, another one
// leads when its lock has expired, after the TTL of 10 s; what is due meanwhile
// does not run. gocron asks before each run, not during one. A job that goes on
// after its replica has lost the lead should end with the lease's context.
//
// Runs of a job can overlap on the leader, unless it is in
// gocron.WithSingletonMode. A leader that resigns between the ticks of two clocks
// can run a job twice. A Locker prevents both. gocron ignores a locker if it
// has an elector.
package redlatchgocron
