//go:build unix

package sqltest

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Own is a server of one test, which the test may break.
type Own struct {
	*server
	t   testing.TB
	dsn func(port string) string
}

// own starts a server, and ends it with the test.
func own(t testing.TB, s *server, dsn func(port string) string) *Own {
	t.Helper()
	o := &Own{server: s, t: t, dsn: dsn}
	t.Cleanup(func() {
		o.Thaw()
		s.stop()
	})
	s.address(t)
	return o
}

// DSN returns the address of a database on the server.
func (o *Own) DSN() string { return o.dsn(o.port) }

// Through returns the address of the database by way of another one, such as a
// proxy's.
func (o *Own) Through(address string) string {
	return strings.Replace(o.DSN(), o.Addr(), address, 1)
}

// Addr returns host and port.
func (o *Own) Addr() string { return "127.0.0.1:" + o.port }

// Kill kills the server with all its processes.
func (o *Own) Kill() {
	o.signal(syscall.SIGKILL)
	o.parent.Close()
	o.cmd.Wait()
	o.cmd = nil
}

// Restart starts the server again, after Kill, with its data and on its port.
func (o *Own) Restart() {
	o.t.Helper()
	if err := o.startOn(); err != nil {
		o.t.Fatal(err)
	}
}

// Freeze stops all processes of the server, until Thaw.
func (o *Own) Freeze() { o.signal(syscall.SIGSTOP) }

// Thaw continues them.
func (o *Own) Thaw() { o.signal(syscall.SIGCONT) }

// signal sends a signal to all processes of the server. PostgreSQL's are each in
// a session of its own, so there is no group of them.
func (o *Own) signal(s syscall.Signal) {
	if o.cmd == nil {
		return
	}
	sent := map[int]bool{}
	for more := true; more; { // one may be started meanwhile
		more = false
		for _, pid := range descendants(o.cmd.Process.Pid) {
			if !sent[pid] {
				sent[pid], more = true, true
				syscall.Kill(pid, s)
			}
		}
	}
}

// descendants returns the processes that a process has started, and theirs.
func descendants(of int) (all []int) {
	out, _ := exec.Command("ps", "-e", "-o", "pid=,ppid=").Output()
	family := []int{of}
	for grown := true; grown; {
		grown = false
		for line := range strings.Lines(string(out)) {
			fields := strings.Fields(line)
			if len(fields) != 2 {
				continue
			}
			pid, _ := strconv.Atoi(fields[0])
			parent, _ := strconv.Atoi(fields[1])
			if slices.Contains(family, parent) && !slices.Contains(family, pid) {
				family, grown = append(family, pid), true
			}
		}
	}
	return family[1:]
}
