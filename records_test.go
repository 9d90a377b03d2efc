package redlatch_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// settle has a client notice which nodes restarted, and outlasts their
// quarantine.
func settle(t *testing.T, c *redlatch.Client) {
	t.Helper()
	must(t, locktest.MustLock(t, c, "other", redlatch.LockOptions{Wait: 5 * time.Minute}).Release(t.Context()))
	time.Sleep(time.Minute)
}

// newStores returns n nodes that have been in service for a minute.
func newStores(t *testing.T, n int) ([]*locktest.Guarded, []redlatch.Node) {
	stores, nodes := locktest.NewGuarded(n)
	c := locktest.NewClient(t, nodes, redlatch.Options{Guard: redlatch.GuardOn, AssumeFresh: true})
	must(t, locktest.MustLock(t, c, "first", redlatch.LockOptions{}).Release(t.Context()))
	time.Sleep(time.Minute)
	return stores, nodes
}

// job is a client of the nodes, whose log is read.
type job struct {
	*redlatch.Client
	logged
}

func newJob(t *testing.T, nodes []redlatch.Node, retention time.Duration) *job {
	j := &job{}
	opts := j.options()
	opts.Guard, opts.CompletedRetention = redlatch.GuardOn, retention
	j.Client = locktest.NewClient(t, nodes, opts)
	return j
}

func (j *job) once(t *testing.T, occurrence string) (bool, error) {
	t.Helper()
	ran, err := j.Once(t.Context(), "job", occurrence, &redlatch.LockOptions{Wait: 5 * time.Minute}, noop)
	synctest.Wait()
	return ran, err
}

// must calls Once, and fails unless it runs, or does not, as wanted.
func (j *job) must(t *testing.T, occurrence string, want bool) {
	t.Helper()
	if ran, err := j.once(t, occurrence); ran != want || err != nil {
		t.Fatalf("occurrence %s: ran is %v, %v; want %v", occurrence, ran, err, want)
	}
}

// warnings returns the warnings that an occurrence may run again.
func (j *job) warnings() int { return len(j.with("level=WARN", "lost their records")) }

// TestOnceDoesNotRunAgainAfterOneServerLostItsData completes an occurrence while
// the third node is away, and has the second lose its data. The name is used for
// the first time, or was used before.
func TestOnceDoesNotRunAgainAfterOneServerLostItsData(t *testing.T) {
	for _, usedBefore := range []bool{false, true} {
		for _, keepData := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				stores, nodes := newStores(t, 3)
				c := newJob(t, nodes, 0)
				if usedBefore {
					c.must(t, "1", true)
				}
				stores[2].SetDown(true)
				saved := stores[1].Save()
				c.must(t, "2", true)
				stores[2].SetDown(false)
				if keepData { // but not the last
					stores[1].Load(saved)
					stores[1].Reboot()
				} else {
					stores[1].Empty()
				}
				settle(t, c.Client)
				stores[0].SetDown(true)
				ran, err := c.once(t, "2")
				if ran {
					t.Fatalf("used before: %v, restarted with old data: %v: it ran again", usedBefore, keepData)
				}
				locktest.WantErr(t, err, redlatch.ErrNoQuorum)
				if text := err.Error(); !strings.Contains(text, `"2" of "job"`) || !strings.Contains(text, "and 2 may have lost them; run it again when 1 answers (1: connection refused") {
					t.Errorf("the error is %v", err)
				}
				// Nobody runs what may have run, and nobody forgets that it did.
				if done, _, err := c.Completed(t.Context(), "job", "2"); done || err == nil {
					t.Errorf("done is %v, %v", done, err)
				}
				stores[0].SetDown(false)
				stores[0].OnRequest(func(any) { time.Sleep(40 * time.Millisecond) })
				c.must(t, "2", false)
				c.must(t, "3", true)
				if c.warnings() > 0 {
					t.Errorf("the log says\n%s", c.String())
				}
			})
		}
	}
}

// TestFirstUseOfANameRuns has all nodes up, or a minority down: of nodes that
// began together, or of some that are new to the others.
func TestFirstUseOfANameRuns(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5} {
		for down := range n - n/2 {
			for _, guard := range []redlatch.GuardMode{redlatch.GuardOn, redlatch.GuardOff} {
				synctest.Test(t, func(t *testing.T) {
					stores, nodes := newStores(t, n)
					for _, s := range stores[:down] {
						s.SetDown(true)
					}
					c := &job{}
					opts := c.options()
					opts.Guard = guard
					c.Client = locktest.NewClient(t, nodes, opts)
					c.must(t, "1", true)
					c.must(t, "1", false)
					for _, s := range stores[:down] {
						s.SetDown(false)
					}
					c.must(t, "2", true)
					c.must(t, "1", false)
					if c.warnings() > 0 {
						t.Errorf("%d of %d nodes down: the log says\n%s", down, n, c.String())
					}
				})
			}
		}
	}
}

// TestRollingRestartForgetsNoOccurrence restarts one node after the other without
// its data. Between two of them Once is called: for an occurrence that is
// completed, or for the next.
func TestRollingRestartForgetsNoOccurrence(t *testing.T) {
	for _, next := range []bool{false, true} {
		for _, n := range []int{3, 5} {
			synctest.Test(t, func(t *testing.T) {
				stores, nodes := newStores(t, n)
				c := newJob(t, nodes, 0)
				c.must(t, "1", true)
				c.must(t, "2", true)
				for i, s := range stores {
					s.Empty()
					settle(t, c.Client)
					c.must(t, "2", false)
					if next {
						c.must(t, fmt.Sprint("next ", i), true)
					}
				}
				for i := range stores {
					if next {
						c.must(t, fmt.Sprint("next ", i), false)
					}
					stores[i].SetDown(true)
					c.must(t, "1", false)
					stores[i].SetDown(false)
				}
				c.must(t, "3", true)
				if c.warnings() > 0 {
					t.Errorf("the log says\n%s", c.String())
				}
			})
		}
	}
}

// TestOnceRunsAgainWhereTooManyForgot has two of three nodes lose their data, one
// at a time, without a Once in between.
func TestOnceRunsAgainWhereTooManyForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, nodes := newStores(t, 3)
		c := newJob(t, nodes, 0)
		stores[2].SetDown(true)
		c.must(t, "1", true)
		stores[2].SetDown(false)
		for _, s := range stores[:2] {
			s.Empty()
			settle(t, c.Client)
		}
		c.must(t, "1", true)
		c.must(t, "1", false)
		c.must(t, "2", true)
		if c.warnings() != 1 {
			t.Errorf("there are %d warnings in\n%s", c.warnings(), c.String())
		}
	})
}

// TestNodeThatLostItsDataLongAgoCounts has a node lose its data, and stay away
// from every Once until the retention is over.
func TestNodeThatLostItsDataLongAgoCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, nodes := newStores(t, 3)
		c := newJob(t, nodes, time.Hour)
		c.must(t, "1", true)
		stores[1].Empty()
		settle(t, c.Client)
		stores[0].SetDown(true)
		if ran, err := c.once(t, "2"); ran || err == nil {
			t.Errorf("one node of three is sure: ran is %v, %v", ran, err)
		}
		time.Sleep(time.Hour)
		c.must(t, "2", true)
		if c.warnings() > 0 {
			t.Errorf("the log says\n%s", c.String())
		}
	})
}

// TestCallerWithAShortRetentionMakesNoMemoryWhole has two callers of one job that
// keep records for different times. The occurrence is completed while the third node
// is away, and the second loses its data.
func TestCallerWithAShortRetentionMakesNoMemoryWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, nodes := newStores(t, 3)
		careful, hasty := newJob(t, nodes, 7*24*time.Hour), newJob(t, nodes, 3*time.Second)
		careful.must(t, "0", true)
		stores[2].SetDown(true)
		careful.must(t, "1", true)
		stores[1].Empty()
		stores[2].SetDown(false)
		settle(t, careful.Client)
		stores[0].SetDown(true)
		if completed, _, err := hasty.Completed(t.Context(), "job", "1"); completed || err == nil {
			t.Errorf("one node of three is sure: completed is %v, %v", completed, err)
		}
		if ran, err := hasty.once(t, "2"); ran || err == nil {
			t.Errorf("one node of three is sure: ran is %v, %v", ran, err)
		}
		if ran, err := careful.once(t, "1"); ran || err == nil {
			t.Errorf("what is completed ran again: %v, %v", ran, err)
		}
		stores[0].SetDown(false)
		hasty.must(t, "1", false)
		hasty.must(t, "2", true)
		time.Sleep(time.Hour)
		careful.must(t, "2", false) // the record is kept as long as the others
	})
}

// TestEveryRecordIsCopied has more records than one request can carry.
func TestEveryRecordIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, nodes := newStores(t, 3)
		c := newJob(t, nodes, 0)
		c.must(t, "0", true)
		const records = 2*node.MaxRecords + 1
		for i := range records {
			for _, s := range stores[:2] {
				req := node.RecordsRequest{Op: node.OpComplete, Name: "job", Occurrence: fmt.Sprint(i), Retention: time.Hour}
				_, err := s.Records(t.Context(), req)
				must(t, err)
			}
		}
		stores[2].Empty()
		settle(t, c.Client)
		c.must(t, "next", true)
		saved := stores[2].Save()
		if got := len(saved.Stored("job").Records.Completed); got != records+1 {
			t.Errorf("%d of %d records were copied", got, records+1)
		}
	})
}
