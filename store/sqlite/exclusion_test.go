package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
)

const countTimes = 40

// count adds to a number in a file many times, in a way that is correct only
// under a lock. It prints a row each time.
func count(n *Node, file string) error {
	const ttl = time.Second
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := redlatch.New([]redlatch.Node{n}, &redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: ttl}})
	if err != nil {
		return err
	}
	defer c.Close()
	for i := 0; i < countTimes; {
		lease, err := c.Lock(ctx, "counter", &redlatch.LockOptions{TTL: ttl, NoKeepAlive: true})
		if err != nil {
			return err
		}
		// A process that was stalled for long does not hold the lock any more.
		if lease.Remaining() > ttl/2 {
			if err := increment(file, lease.Token()); err != nil {
				return err
			}
			fmt.Println("counted")
			i++
		}
		lease.Release(ctx) // it may be over
	}
	return nil
}

// increment reads and writes in two steps. The second is so small that a
// process is killed before it or after it, never within it.
func increment(file string, token redlatch.Token) error {
	was, last, err := readCount(file)
	if err != nil {
		return err
	}
	if token <= last {
		return fmt.Errorf("the token %d came after %d", uint64(token), uint64(last))
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(fmt.Appendf(nil, "%020d %v\n", was+1, token), 0)
	return err
}

func readCount(file string) (n int, last redlatch.Token, err error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err == nil {
		_, err = fmt.Sscanf(string(b), "%d %d", &n, (*uint64)(&last))
	}
	return n, last, err
}

func TestProcessesThatAreKilledDoNotBreakExclusion(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and waits for locks of dead ones to expire")
	}
	const processes, victims = 6, 3
	dir := t.TempDir()
	file := filepath.Join(dir, "count")

	var all []*process
	for range processes {
		all = append(all, start(t, "count", filepath.Join(dir, "locks.db"), file))
	}
	for _, p := range all {
		p.begin()
	}
	counted := make([]int, processes)
	var done sync.WaitGroup
	for i, p := range all {
		dies := countTimes + 1
		if i < victims {
			dies = 5 + rand.IntN(countTimes/2)
		}
		done.Go(func() {
			for p.stdout.Scan() {
				if counted[i]++; counted[i] == dies {
					// During its release or its next acquire, or while it holds
					// the lock.
					p.kill()
				}
			}
		})
	}
	done.Wait()
	said := 0
	for i, p := range all {
		if i >= victims {
			p.finish()
			if counted[i] != countTimes {
				t.Errorf("process %d counted %d times, want %d: %s", i, counted[i], countTimes, p.stderr.String())
			}
		}
		said += counted[i]
	}
	n, _, err := readCount(file)
	must(t, err)
	// A process that was killed may have written once more than it printed.
	if n < said || n > said+victims {
		t.Errorf("the count is %d after %d increments, give or take %d that were killed", n, said, victims)
	}
}
