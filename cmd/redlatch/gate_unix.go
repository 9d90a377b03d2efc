//go:build unix

package main

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// gateVerb is the command line under which we stand in for CMD until the
// guardian is in its group.
const gateVerb = "__gate"

// gate holds CMD back until its guardian is in place. CMD's group has CMD's
// process id for its number, which nobody knows before there is such a process;
// were it CMD already, it could start others before we have told the guardian,
// and be left behind if we were killed at that moment. So the process starts as
// this program, which waits for the gate to open and then becomes CMD. If we die
// first, it never does.
type gate struct {
	ours   *os.File // a byte in opens it; out comes why CMD cannot be run, or nothing
	theirs int
}

// behindGate returns cmd as it is to be started, and the gate before it. No
// other process may be started meanwhile: it would keep the gate from closing.
func behindGate(cmd *exec.Cmd) (*exec.Cmd, *gate, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	unix.CloseOnExec(ends[0])
	g := &gate{ours: os.NewFile(uintptr(ends[0]), "gate"), theirs: ends[1]}
	held := *cmd
	held.Path = ownPath()
	// Not among ExtraFiles, whose numbers are fixed: what CMD inherits from
	// whoever started us, under whichever number, it inherits still.
	held.Args = append([]string{"redlatch", gateVerb, strconv.Itoa(g.theirs), cmd.Path}, cmd.Args...)
	return &held, g, nil
}

// passed tells the gate that the process behind it was started, or was not.
func (g *gate) passed() { unix.Close(g.theirs) }

// open lets the process become CMD, and returns why it could not.
func (g *gate) open() error {
	defer g.ours.Close()
	if _, err := g.ours.Write([]byte{0}); err != nil {
		return nil // it has ended, and how will be seen
	}
	reason := make([]byte, 8)
	if _, err := io.ReadFull(g.ours, reason); err != nil {
		return nil // CMD has closed it, by starting
	}
	return syscall.Errno(binary.BigEndian.Uint64(reason))
}

func (g *gate) close() { g.ours.Close() }

// isGate reports whether these arguments make this process stand in for CMD.
func isGate(args []string) bool { return len(args) > 3 && args[0] == gateVerb }

// runGate waits and becomes CMD. It returns only if it does not.
func runGate(args []string) int {
	fd, err := strconv.Atoi(args[1])
	if err != nil {
		return exitUsage
	}
	unix.CloseOnExec(fd)
	for word := make([]byte, 1); ; {
		n, err := unix.Read(fd, word)
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			return exitCannotRun // redlatch is dead
		}
		break
	}
	err = syscall.Exec(args[2], args[3:], os.Environ())
	var reason syscall.Errno
	if errors.As(err, &reason) {
		unix.Write(fd, binary.BigEndian.AppendUint64(nil, uint64(reason)))
	}
	return exitCannotRun
}
