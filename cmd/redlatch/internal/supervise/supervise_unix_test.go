//go:build unix

package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	ctx    context.Context
	cancel context.CancelFunc
	gain   time.Duration // what an extension moves the deadline by; 0 for failure
	doomed bool
	report string // a file that Ignored writes

	mu      sync.Mutex // guards what follows
	until   time.Time
	err     error // why it was taken before its deadline
	extends int
	ignored int
}

func newLease(t *testing.T, left time.Duration) *fakeLease {
	l := &fakeLease{until: time.Now().Add(left)}
	l.ctx, l.cancel = context.WithCancel(t.Context())
	return l
}

func (l *fakeLease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0
	}
	return max(time.Until(l.until), 0)
}

func (l *fakeLease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && !time.Now().Before(l.until) {
		return errors.New("the deadline is over")
	}
	return l.err
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

// shorten sets the deadline.
func (l *fakeLease) shorten(left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Now().Add(left)
}

// take ends the lease before its deadline.
func (l *fakeLease) take(err error) {
	l.mu.Lock()
	l.err = err
	l.mu.Unlock()
	l.cancel()
}

var errTaken = errors.New("taken")

func (l *fakeLease) Context() context.Context { return l.ctx }
func (l *fakeLease) Doomed() bool             { return l.doomed }
func (l *fakeLease) Taken(cause error) bool   { return errors.Is(cause, errTaken) }
func (l *fakeLease) Lost(cause error) error   { return fmt.Errorf("lost: %v", cause) }
func (l *fakeLease) Ignored() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ignored++
	os.WriteFile(l.report, nil, 0o600)
}

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

// isGone reports whether the process that a file names is gone.
func isGone(t *testing.T, c Config, name string) bool {
	t.Helper()
	pid, err := strconv.Atoi(read(t, c, name))
	check.Must(t, err)
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// calm is a plan with which nothing is due while a test runs.
var calm = NewPlan(time.Second, Term)

func TestExitIsThatOfTheCommand(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]Exit{
		"exit 7":         {Code: 7},
		"kill -TERM $$":  {Code: 143, Signal: syscall.SIGTERM},
		"kill -KILL $$":  {Code: 137}, // not a signal that we should die by
		"kill -INT $$":   {Code: 130, Signal: syscall.SIGINT},
		"trap : TERM; :": {},
	} {
		r := Run(shell(t, newLease(t, time.Hour), calm, script))
		if r.End != Exited || r.Exit != want || r.Keyed || len(r.Signals) > 0 {
			t.Errorf("%s: %+v, want %+v", script, r, want)
		}
	}
}

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

func TestCommandThatCannotBeRunIsNotStarted(t *testing.T) {
	t.Parallel()
	c := shell(t, newLease(t, time.Hour), calm, "")
	c.Cmd.Path = filepath.Join(t.TempDir(), "none")
	if r := Run(c); r.End != NotStarted || !errors.Is(r.Err, os.ErrNotExist) {
		t.Errorf("%+v", r)
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

func TestWhatCommandLeavesBehindIsEnded(t *testing.T) {
	t.Parallel()
	c := shell(t, newLease(t, time.Hour), calm, "sleep 600 & echo $! >left; exit 3")
	if r := Run(c); r.End != Exited || r.Exit.Code != 3 || !isGone(t, c, "left") {
		t.Errorf("%+v", r)
	}
}

func TestLeaseThatRunsOutEndsTheGroup(t *testing.T) {
	t.Parallel()
	for _, mode := range []OnLost{Term, Kill} {
		l := newLease(t, time.Hour)
		l.doomed = true
		c := shell(t, l, NewPlan(800*time.Millisecond, mode), `trap "echo >asked" TERM; sleep 600 & echo $! >left; echo $$ >cmd; while :; do sleep 0.02; done`)
		go func() {
			read(t, c, "cmd")
			l.shorten(2 * time.Second)
		}()
		r := Run(c)
		if r.End != Lost || r.Err == nil || !isGone(t, c, "cmd") || !isGone(t, c, "left") {
			t.Errorf("%s: %+v", mode, r)
		}
		if _, err := os.Stat(filepath.Join(c.Cmd.Dir, "asked")); mode == Kill && err == nil {
			t.Error("with kill CMD was sent TERM")
		}
	}
}

func TestLeaseThatIsTakenEndsTheGroup(t *testing.T) {
	t.Parallel()
	l := newLease(t, time.Hour)
	c := shell(t, l, calm, `echo $$ >cmd; exec sleep 600`)
	go func() {
		read(t, c, "cmd")
		l.take(errTaken)
	}()
	if r := Run(c); r.End != Lost || r.Err.Error() != "lost: taken" || !isGone(t, c, "cmd") {
		t.Errorf("%+v", r)
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

func TestIgnoredLossLetsTheCommandRunOn(t *testing.T) {
	t.Parallel()
	l := newLease(t, time.Hour)
	c := shell(t, l, NewPlan(time.Second, Ignore), "echo >started; until [ -e reported ]; do sleep 0.02; done; exit 5")
	go func() {
		read(t, c, "started")
		l.take(errTaken)
	}()
	l.report = filepath.Join(c.Cmd.Dir, "reported")
	if r := Run(c); r.End != Exited || r.Exit.Code != 5 || l.ignored != 1 {
		t.Errorf("%+v, reported %d times", r, l.ignored)
	}
}

func TestSecondInterruptKills(t *testing.T) {
	t.Parallel()
	c := shell(t, newLease(t, time.Hour), calm, `trap "echo >asked" INT; echo $$ >cmd; while :; do sleep 0.02; done`)
	go func() {
		read(t, c, "cmd")
		c.Signals <- os.Interrupt
		read(t, c, "asked")
		c.Signals <- os.Interrupt
	}()
	want := Exit{130, syscall.SIGINT}
	if r := Run(c); r.End != Exited || r.Exit != want || len(r.Signals) != 2 || !isGone(t, c, "cmd") {
		t.Errorf("%+v", r)
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
