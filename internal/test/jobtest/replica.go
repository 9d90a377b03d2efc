//go:build unix

package jobtest

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// Spec is Step for a scheduler, with a field for seconds.
const Spec = "*/2 * * * * *"

// Job is the name of a replica's job.
const Job = "report"

// A Replica is a process with a scheduler: the test binary, started again. Its
// fields are flags.
type Replica struct {
	Name     string
	File     File
	TTL      time.Duration
	Wait     time.Duration // LockOptions.Wait
	Work     time.Duration // how long the job takes
	Late     time.Duration // by how much its clock is behind
	Mode     string        // which sort of lock, for schedulers that have several
	Sabotage string        // what to leave out: NoLock or NoOnce

	Locks *redlatch.Client
}

// The sabotages of a replica.
const (
	NoLock = "no-lock" // its job runs without a lock
	NoOnce = "no-once" // its job runs under a lock, and nothing notes that it did
)

// Main is the main program of a replica. start starts the scheduler and returns
// how to stop it: stop waits for running jobs.
func Main(start func(*Replica) (stop func(), err error)) {
	log.SetFlags(0)
	r := &Replica{}
	flag.StringVar(&r.Name, "replica", "", "")
	flag.StringVar((*string)(&r.File), "file", "", "")
	flag.DurationVar(&r.TTL, "ttl", 0, "")
	flag.DurationVar(&r.Wait, "wait", 0, "")
	flag.DurationVar(&r.Work, "work", 0, "")
	flag.DurationVar(&r.Late, "late", 0, "")
	flag.StringVar(&r.Mode, "mode", "", "")
	flag.StringVar(&r.Sabotage, "sabotage", "", "")
	flag.Parse()
	if err := r.run(start); err != nil {
		log.Fatal(err)
	}
}

func (r *Replica) run(start func(*Replica) (func(), error)) error {
	slog.SetLogLoggerLevel(slog.LevelDebug)
	nodes, err := direct.Nodes(strings.Split(os.Getenv("REDLATCH_NODES"), ",")...)
	if err != nil {
		return err
	}
	if r.Locks, err = redlatch.New(nodes, &redlatch.Options{Label: r.Name, Logger: slog.Default()}); err != nil {
		return err
	}
	defer r.Locks.Close()
	stop, err := start(r)
	if err != nil {
		return err
	}
	fmt.Println("started")
	if in := bufio.NewScanner(os.Stdin); !in.Scan() {
		os.Exit(2) // the test that started us is gone
	}
	stop()
	return nil
}

// Lock returns the options of the replica's lock.
func (r *Replica) Lock() redlatch.LockOptions {
	return redlatch.LockOptions{TTL: r.TTL, Wait: r.Wait}
}

// Now returns the time of the replica's clock.
func (r *Replica) Now() time.Time { return time.Now().Add(-r.Late) }

// Due returns the time for which a job runs that is started now.
func (r *Replica) Due() time.Time { return r.Now().Truncate(Step) }

// Ticked notes that the scheduler was due to run the job.
func (r *Replica) Ticked(due time.Time) {
	if err := r.File.Note(Tick, r.Name, due); err != nil {
		log.Fatal(err)
	}
}

// Run is the job, run for the time at which it was due.
func (r *Replica) Run(due time.Time) {
	var err error
	if r.Now().Before(due) {
		err = r.File.Note(Early, r.Name, due)
	}
	if err := cmp.Or(err, r.File.Run(r.Name, due, r.Work)); err != nil {
		log.Fatal(err)
	}
}

// Sabotaged is the job without what the tests test: without a lock, or with one
// and nothing else.
func (r *Replica) Sabotaged() {
	due := r.Due()
	if r.Sabotage == NoLock {
		r.Run(due)
		return
	}
	lock := r.Lock()
	err := r.Locks.Do(context.Background(), Job, &lock, func(context.Context, *redlatch.Lease) error {
		r.Run(due)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
