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
	if s.proc == nil {
		return
	}
	s.signal(syscall.SIGSTOP) // so that none of them starts another meanwhile
	s.signal(syscall.SIGKILL)
	<-s.gone
	s.proc = nil
}

// Freeze stops all processes of the server, until Thaw.
func (s *Database) Freeze() error { return s.signal(syscall.SIGSTOP) }

// Thaw continues them.
func (s *Database) Thaw() error { return s.signal(syscall.SIGCONT) }

// signal sends a signal to all processes of the server. PostgreSQL's are each in
// a session of its own, so there is no group of them.
func (s *Database) signal(sig syscall.Signal) error {
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
	if s.proc == nil {
		return nil, errDown
	}
	return family(s.proc.Pid)
}

// family returns a process, those that it has started, and theirs.
func family(of int) (all []int, err error) {
	out, err := exec.Command("ps", "-e", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil, err
	}
	all = []int{of}
	for grown := true; grown; {
		grown = false
		for line := range strings.Lines(string(out)) {
			fields := strings.Fields(line)
			if len(fields) != 2 {
				continue
			}
			pid, _ := strconv.Atoi(fields[0])
			parent, _ := strconv.Atoi(fields[1])
			if slices.Contains(all, parent) && !slices.Contains(all, pid) {
				all, grown = append(all, pid), true
			}
		}
	}
	return all, nil
}
