//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/stall"
)

// ttl is the default time to live of a lock.
const ttl = 10 * time.Second

// take is the life of a process: it takes the lock again and again, and prints
// its counts every few seconds.
func take(text string) error {
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	stall.Watch()
	client, err := open(p, redlatch.Options{NodeTimeout: p.NodeTimeout})
	if err != nil {
		return err
	}
	defer client.Close()
	file, err := os.OpenFile(p.File, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	c := &counts{Errors: map[string]int{}}
	out := json.NewEncoder(os.Stdout)
	begin, said := time.Now(), time.Now()
	for time.Since(begin) < p.For {
		c.turn(client, p, file)
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			if err := out.Encode(counts{Acquired: c.Acquired}); err != nil {
				return err
			}
		}
	}
	c.Stall = stall.Longest(begin)
	return out.Encode(c)
}

// turn takes the lock once.
func (c *counts) turn(client *redlatch.Client, p plan, file *os.File) {
	ctx, start := context.Background(), time.Now()
	lease, err := client.Lock(ctx, "job", redlatch.LockOptions{})
	switch {
	case errors.Is(err, redlatch.ErrNoQuorum):
		c.wrong(&c.NoQuorum, err, start)
		return
	case err != nil:
		c.wrong(&c.Others, err, start)
		return
	}
	c.Acquired++
	c.Waited = append(c.Waited, time.Since(start))
	// If two hold the lock at once, they collide at the file.
	start = time.Now()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if lease.Err() == nil {
			c.TwoHolders++
		}
	} else {
		defer syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
	}
	select {
	case <-time.After(p.Hold):
	case <-lease.Context().Done():
	}
	if err := lease.Err(); err != nil {
		c.wrong(&c.Lost, err, start)
		return
	}
	syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
	if err := lease.Release(ctx); err != nil {
		c.wrong(&c.FailedReleases, err, start)
	}
}

// wrong counts a failure, and excuses it if the machine was stalled in that
// time.
func (c *counts) wrong(n *int, err error, since time.Time) {
	*n++
	if stall.Longest(since) > ttl {
		c.Excused++
	}
	text := err.Error()
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	if len(c.Errors) < 20 {
		c.Errors[text]++
	}
}

// percentile returns the time that the given part of the waits did not exceed.
func percentile(waits []time.Duration, part int) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[(len(waits)-1)*part/100].Round(10 * time.Microsecond)
}
