//go:build unix

package servertest

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Kill kills the server with all its processes. Start starts it again.
func (s *Database) Kill() {
	if s.cmd == nil {
		return
	}
	s.signal(syscall.SIGSTOP) // so that none of them starts another meanwhile
	s.signal(syscall.SIGKILL)
	s.parent.Close() // ends it if it is still there
	s.cmd.Wait()
	s.cmd = nil
}

// Freeze stops all processes of the server, until Thaw.
func (s *Database) Freeze() error { return s.signal(syscall.SIGSTOP) }

// Thaw continues them.
func (s *Database) Thaw() error { return s.signal(syscall.SIGCONT) }

// signal sends a signal to all processes of the server. PostgreSQL's are each in
// a session of its own, so there is no group of them.
func (s *Database) signal(sig syscall.Signal) error {
	if s.cmd == nil {
		return errDown
	}
	sent := map[int]bool{}
	for more := true; more; { // one may be started meanwhile
		more = false
		all, err := s.Pids()
		if err != nil {
			return err
		}
		for _, pid := range all {
			if !sent[pid] {
				sent[pid], more = true, true
				syscall.Kill(pid, sig)
			}
		}
	}
	return nil
}

// Pids returns the ids of the server's processes.
func (s *Database) Pids() ([]int, error) {
	if s.cmd == nil {
		return nil, errDown
	}
	return descendants(s.cmd.Process.Pid)
}

// descendants returns the processes that a process has started, and theirs.
func descendants(of int) (all []int, err error) {
	out, err := exec.Command("ps", "-e", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil, err
	}
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
	return family[1:], nil
}
