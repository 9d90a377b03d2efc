//go:build unix

package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
)

func TestMain(m *testing.M) {
	if code, is := Helper(os.Args[1:]); is {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// fakeLease is a lease without a lock.
type fakeLease struct {
	ctx  context.Context
	gain time.Duration // what an extension moves the deadline by; 0 for failure

	mu      sync.Mutex // guards what follows
	until   time.Time
	extends int
}

func newLease(t *testing.T, left time.Duration) *fakeLease {
	return &fakeLease{ctx: t.Context(), until: time.Now().Add(left)}
}

func (l *fakeLease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(time.Until(l.until), 0)
}

func (l *fakeLease) Err() error {
	if l.Remaining() == 0 {
		return errors.New("the deadline is over")
	}
	return nil
}

func (l *fakeLease) Extend(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extends++
	if l.gain == 0 {
		return errors.New("no extension")
	}
	l.until = l.until.Add(l.gain)
	return nil
}

func (l *fakeLease) Context() context.Context { return l.ctx }
func (l *fakeLease) Doomed() bool             { return false }
func (l *fakeLease) Taken(error) bool         { return false }
func (l *fakeLease) Lost(cause error) error   { return fmt.Errorf("lost: %v", cause) }
func (l *fakeLease) Ignored()                 {}

// shell is a Config for a script of sh, which runs in a folder of its own.
func shell(t *testing.T, l *fakeLease, plan Plan, script string) Config {
	t.Helper()
	path, err := exec.LookPath("sh")
	check.Must(t, err)
	return Config{
		Cmd:   &exec.Cmd{Path: path, Args: []string{"sh", "-c", script}, Dir: t.TempDir()},
		Lease: l, Plan: plan, Signals: make(chan os.Signal, 4),
		Warn: func(format string, args ...any) { t.Errorf("warning: %v", fmt.Errorf(format, args...)) },
	}
}

// read returns the file of a script once it has a line.
func read(t *testing.T, c Config, name string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(c.Cmd.Dir, name)); err == nil && strings.HasSuffix(string(text), "\n") {
			return strings.TrimSpace(string(text))
		}
	}
	t.Errorf("there is no line in %s", name)
	return ""
}

// calm is a plan with which nothing is due while a test runs.
var calm = NewPlan(time.Second, Term)

// stallingLease has this process stall in the middle of a run: the guardian is sent
// a deadline, and hears nothing more until it is over. Then the lease is extended.
type stallingLease struct {
	*fakeLease
	asked int
}

func (l *stallingLease) Remaining() time.Duration {
	switch l.asked++; l.asked {
	case 2: // for the guardian
		return 300 * time.Millisecond
	case 3:
		time.Sleep(2 * time.Second)
	}
	return l.fakeLease.Remaining()
}

func TestLeaseIsLostIfTheGuardianHasKilledTheCommand(t *testing.T) {
	t.Parallel()
	c := shell(t, nil, calm, "exec sleep 1000")
	c.Lease = &stallingLease{fakeLease: newLease(t, time.Hour)}
	if r := Run(c); r.End != Lost || r.Err == nil {
		t.Errorf("the guardian killed it, and the run says %+v", r)
	}
}

func TestLeaseThatIsTooShortStartsNothing(t *testing.T) {
	t.Parallel()
	l := newLease(t, 500*time.Millisecond)
	c := shell(t, l, calm, "echo >started")
	if r := Run(c); r.End != TooLate || l.extends != 1 {
		t.Errorf("%+v after %d extensions", r, l.extends)
	}
	if _, err := os.Stat(filepath.Join(c.Cmd.Dir, "started")); err == nil {
		t.Error("CMD was started")
	}
	l.gain = time.Hour
	if r := Run(shell(t, l, calm, "exit 7")); r.End != Exited || r.Exit.Code != 7 {
		t.Errorf("with an extension: %+v", r)
	}
}

func TestLeaseThatCanBeSavedIsNotLost(t *testing.T) {
	t.Parallel()
	l := newLease(t, 5*time.Second)
	l.gain = time.Hour
	r := Run(shell(t, l, NewPlan(4*time.Second, Term), "sleep 1.5"))
	if r.End != Exited || r.Exit.Code != 0 || l.extends != 1 {
		t.Errorf("%+v after %d extensions", r, l.extends)
	}
}

// TestRunsDoNotInheritEachOthersGates starts many commands at once, and interrupts
// each. One whose gate another had inherited would seem not to have begun as long
// as the other ran, and its signals would wait.
func TestRunsDoNotInheritEachOthersGates(t *testing.T) {
	t.Parallel()
	const runs = 30
	var all, begun sync.WaitGroup
	begun.Add(runs)
	for range runs {
		c := shell(t, newLease(t, time.Hour), calm, "echo >begun; exec sleep 600")
		all.Go(func() {
			if r := Run(c); r.End != Exited || r.Exit.Signal != syscall.SIGTERM {
				t.Errorf("%+v", r)
			}
		})
		go func() {
			read(t, c, "begun")
			begun.Done()
			begun.Wait()
			c.Signals <- syscall.SIGTERM
		}()
	}
	all.Wait()
}
