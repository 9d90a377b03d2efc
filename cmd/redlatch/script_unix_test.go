//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/sqlite"
)

func TestMain(m *testing.M) {
	// The race detector makes a process that succeeds sleep for a second.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	if filepath.Base(os.Args[0]) != "redlatch" {
		// The user who runs these tests may have settings. The command, which
		// is this program under another name, has those of its test.
		os.Setenv("XDG_CONFIG_HOME", os.DevNull)
		// Under nohup, or in the background of a script, programs would inherit
		// that signals are ignored. One that is handled here is not.
		for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
			if signal.Ignored(s) {
				signal.Notify(make(chan os.Signal, 1), s)
			}
		}
	}
	testscript.Main(apart{m}, map[string]func(){"redlatch": main})
}

// apart runs the tests with a state folder of their own, so that they do not
// touch the user's locks.
type apart struct{ m *testing.M }

func (a apart) Run() int {
	dir, err := os.MkdirTemp("", "redlatch-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("REDLATCH_STATE_DIR", dir)
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		// These tests wait most of the time.
		flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	}
	return servertest.Main(a.m)
}

func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hundreds of processes")
	}
	// Under nohup these tests would pass on an ignored HUP. A signal that a
	// process catches has the default action in its children.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangup) })
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			testscript.RunT(scriptT{t}, scriptParams(file, buildCommand(t)))
		})
	}
}

// scriptT is a TB on which a single script runs, at once.
type scriptT struct{ testing.TB }

func (scriptT) Parallel()                                 {}
func (scriptT) Verbose() bool                             { return testing.Verbose() }
func (t scriptT) Run(_ string, script func(testscript.T)) { script(t) }

// scriptParams are those of a script whose commands are the given one. What it
// spawns is this program, with the race detector.
func scriptParams(file, command string) testscript.Params {
	return testscript.Params{
		Files: []string{file},
		Setup: func(env *testscript.Env) error {
			env.Setenv("REDLATCH_STATE_DIR", env.WorkDir)
			env.Setenv("REDLATCH_NODES", "local")
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("SPAWN_PATH", env.Getenv("PATH"))
			env.Setenv("PATH", filepath.Dir(command)+":"+env.Getenv("PATH"))
			env.Values[jobsKey{}] = map[string]*job{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"spawn":   spawn,
			"signal":  sendSignal,
			"ends":    jobEnds,
			"await":   awaitFile,
			"gone":    gone,
			"dies":    dies,
			"waiters": waiters,
			"lose":    lose,

			"guardian": guardianOf,
			"oneline":  oneLine,
		},
	}
}

// eventually polls until the condition of the script holds. If it does not, the
// log has what the jobs wrote.
func eventually(ts *testscript.TestScript, what string, is func() bool) {
	if poll.Holds(poll.Patience, is) {
		return
	}
	for id, j := range ts.Value(jobsKey{}).(map[string]*job) {
		ts.Logf("%s: %s", id, ts.ReadFile(j.stderr))
	}
	ts.Fatalf("in vain waited for %s", what)
}

// exits CODE CMD...: CMD ends with exactly that exit code, or by the signal of
// that name.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	checkCode(ts, args[0], err)
}

func checkCode(ts *testscript.TestScript, want string, err error) {
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
		if w := exit.Sys().(syscall.WaitStatus); w.Signaled() && w.Signal() == signalNames[want] {
			return
		}
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d (%v), not %s", code, err, want)
	}
}

// job is a process in the background of a script.
type job struct {
	cmd    *exec.Cmd
	stderr string // a file
}

type jobsKey struct{}

func jobOf(ts *testscript.TestScript, id string) *job {
	j := ts.Value(jobsKey{}).(map[string]*job)[id]
	if j == nil {
		ts.Fatalf("no job %s", id)
	}
	return j
}

// spawn ID CMD...: starts CMD in the background, with its stderr in ID.err.
func spawn(ts *testscript.TestScript, _ bool, args []string) {
	path := args[1]
	for dir := range strings.SplitSeq(ts.Getenv("SPAWN_PATH"), ":") {
		if p := filepath.Join(dir, args[1]); !strings.Contains(path, "/") {
			if _, err := os.Stat(p); err == nil {
				path = p
			}
		}
	}
	j := &job{cmd: &exec.Cmd{Path: path, Args: args[1:], Dir: ts.MkAbs(".")}, stderr: ts.MkAbs(args[0] + ".err")}
	j.cmd.Env = []string{"PATH=" + ts.Getenv("SPAWN_PATH")}
	for _, name := range []string{"REDLATCH_STATE_DIR", "REDLATCH_NODES", "GORACE"} {
		j.cmd.Env = append(j.cmd.Env, name+"="+ts.Getenv(name))
	}
	stderr, err := os.Create(j.stderr)
	ts.Check(err)
	defer stderr.Close()
	j.cmd.Stderr = stderr
	ts.Check(j.cmd.Start())
	ts.Defer(func() { j.cmd.Process.Kill() })
	ts.Value(jobsKey{}).(map[string]*job)[args[0]] = j
}

// signalNames are the signals that scripts name.
var signalNames = map[string]syscall.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1,
	"TSTP": syscall.SIGTSTP, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
}

// signal NAME ID: sends a signal to a job.
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	s := signalNames[args[0]]
	if s == 0 {
		ts.Fatalf("unknown signal %s", args[0])
	}
	ts.Check(jobOf(ts, args[1]).cmd.Process.Signal(s))
}

// ends ID CODE: the job ends with that exit code, or by the signal of that name;
// its stderr is the script's.
func jobEnds(ts *testscript.TestScript, _ bool, args []string) {
	j := jobOf(ts, args[0])
	timer := time.AfterFunc(time.Minute, func() { j.cmd.Process.Kill() })
	err := j.cmd.Wait()
	timer.Stop()
	stderr := ts.ReadFile(j.stderr)
	fmt.Fprint(ts.Stderr(), stderr)
	ts.Logf("%s: %v\n%s", args[0], err, stderr)
	checkCode(ts, args[1], err)
}

// await FILE [LINES]: the file has so many whole lines, 1 by default.
func awaitFile(ts *testscript.TestScript, _ bool, args []string) {
	lines := 1
	if len(args) > 1 {
		lines, _ = strconv.Atoi(args[1])
	}
	eventually(ts, args[0], func() bool {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && bytes.Count(text, []byte("\n")) >= lines
	})
}

// gone FILE: no process that the file lists is alive; with !, all are.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	for pid := range strings.FieldsSeq(ts.ReadFile(args[0])) {
		n, err := strconv.Atoi(pid)
		ts.Check(err)
		if processes.Alive(n) != neg {
			ts.Fatalf("process %d: alive %v", n, !neg)
		}
	}
}

// dies FILE [DURATION]: the processes that the file names end soon, or within
// that time.
func dies(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) > 1 {
		limit, err := time.ParseDuration(args[1])
		ts.Check(err)
		defer func(start time.Time) {
			if took := time.Since(start) - 4*stall.Longest(start); took > limit {
				ts.Fatalf("it took %v, not %v", took, limit)
			}
		}(time.Now())
	}
	for field := range strings.FieldsSeq(ts.ReadFile(args[0])) {
		pid, err := strconv.Atoi(field)
		ts.Check(err)
		eventually(ts, "the end of process "+field+" of "+args[0], func() bool { return !processes.Alive(pid) })
	}
}

// guardian ID none|dismissed|joined|killed|>FILE: the job has no guardian, will
// have none soon, since it knows that CMD has ended, has one that is in CMD's
// group, loses it to a KILL, or has its process id in a file.
func guardianOf(ts *testscript.TestScript, _ bool, args []string) {
	pid := guardianPid(jobOf(ts, args[0]).cmd.Process.Pid)
	file, isFile := strings.CutPrefix(args[1], ">")
	switch {
	case args[1] == "none":
		if pid != 0 {
			ts.Fatalf("there is a guardian, process %d", pid)
		}
	case args[1] == "dismissed":
		eventually(ts, "the end of the guardian", func() bool { return guardianPid(jobOf(ts, args[0]).cmd.Process.Pid) == 0 })
	case pid == 0:
		ts.Fatalf("there is no guardian")
	case isFile:
		ts.Check(os.WriteFile(ts.MkAbs(file), fmt.Appendln(nil, pid), 0o600))
	case args[1] == "joined":
		eventually(ts, "a guardian in CMD's group", func() bool {
			group, err := syscall.Getpgid(pid)
			return err == nil && group != pid
		})
	default:
		ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	}
}

// guardianPid finds the guardian that a process started; 0 if there is none.
func guardianPid(parent int) int {
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[1] == strconv.Itoa(parent) && fields[3] == supervise.GuardianVerb {
			pid, _ := strconv.Atoi(fields[0])
			return pid
		}
	}
	return 0
}

// waiters N NAME: so many wait for the lock.
func waiters(ts *testscript.TestScript, _ bool, args []string) {
	file := openFile(ts)
	defer file.Close()
	eventually(ts, args[0]+" waiters", func() bool {
		l, err := file.Look(context.Background(), args[1])
		ts.Check(err)
		return strconv.Itoa(l.Waiting) == args[0]
	})
}

// lose NAME: the lock is taken away from its holder.
func lose(ts *testscript.TestScript, _ bool, args []string) {
	file := openFile(ts)
	defer file.Close()
	for _, req := range []node.Request{
		{Op: node.OpBreak, Name: args[0], Value: "thief"},
		{Op: node.OpAcquire, Name: args[0], Value: "thief", TTL: 10 * time.Second},
	} {
		reply, err := file.Do(context.Background(), req)
		ts.Check(err)
		if reply.Status != node.Granted && reply.Status != node.Reserved {
			ts.Fatalf("%v of %s: %v", req.Op, args[0], reply.Status)
		}
	}
}

// oneline stderr: the last command wrote one line.
func oneLine(ts *testscript.TestScript, _ bool, args []string) {
	if text := ts.ReadFile(args[0]); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "redlatch: ") {
		ts.Fatalf("%s is %q", args[0], text)
	}
}

func openFile(ts *testscript.TestScript) *sqlite.Node {
	file, err := sqlite.Open(filepath.Join(ts.Getenv("REDLATCH_STATE_DIR"), "redlatch", "locks.db"), nil)
	ts.Check(err)
	return file
}
