// Package stall distinguishes a slow machine from a slow lock, for tests that
// assert times on real servers.
//
// A watcher measures how late the timers of this process are. A test compares
// its own measurement with that (Longest). A test that came too late to show
// anything says so before it judges (TooLate), and is run again (Retry). A failure
// is never repeated.
package stall

import (
	"sync"
	"time"
)

// step is how often the watcher checks. A shorter stall is not noticed.
const step = 5 * time.Millisecond

// kept is how many of the latest stalls are remembered.
const kept = 4096

// watcher is the watcher of this process.
var watcher struct {
	once sync.Once

	mu     sync.Mutex
	stalls []moment // oldest first
}

// moment is a time at which a timer fired late.
type moment struct {
	end  time.Time
	late time.Duration
}

// Watch starts the watcher. Longest and Retry start it themselves; a test that
// needs earlier stalls calls Watch first.
func Watch() {
	watcher.once.Do(func() {
		go func() {
			for {
				before := time.Now()
				time.Sleep(step)
				note(time.Now(), time.Since(before)-step)
			}
		}()
	})
}

// note records that a timer was late.
func note(end time.Time, late time.Duration) {
	if late < step/5 {
		return
	}
	watcher.mu.Lock()
	defer watcher.mu.Unlock()
	if len(watcher.stalls) == kept {
		watcher.stalls = append(watcher.stalls[:0], watcher.stalls[kept/2:]...)
	}
	watcher.stalls = append(watcher.stalls, moment{end, late})
}

// Longest returns the most that a timer of this process was late, of those that
// were due since then. It is never negative.
func Longest(since time.Time) time.Duration {
	Watch()
	watcher.mu.Lock()
	defer watcher.mu.Unlock()
	longest := time.Duration(0)
	for _, m := range watcher.stalls {
		if m.end.After(since) {
			longest = max(longest, m.late)
		}
	}
	return longest
}
