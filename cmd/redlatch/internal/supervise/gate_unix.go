//go:build unix

package supervise

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/internal/childproc"
)

// gateVerb is the first argument of a process that is to become CMD.
const gateVerb = "__gate"

// gate delays CMD until its guardian is in its group. The number of the group is
// CMD's process id, which is not known before the process exists. If the process
// were CMD from the start, it could start others before the guardian knows the
// group; these would be left if we were killed at that moment. So the process
// starts as this program, waits for the gate to open, and then becomes CMD by
// exec. If we die first, it exits.
type gate struct {
	ours   *os.File // writing a byte opens the gate; reading returns why exec failed, or EOF
	theirs int
}

// forks is held while a process is started. Between behindGate and passed no
// other process may be started: it would inherit the other end, and as long as it
// lived, exec would seem not to have happened.
var forks sync.Mutex

// behindGate returns cmd as it is to be started, and its gate. The caller holds
// forks until it has called passed.
func behindGate(cmd *exec.Cmd) (*exec.Cmd, *gate, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	unix.CloseOnExec(ends[0])
	g := &gate{ours: os.NewFile(uintptr(ends[0]), "gate"), theirs: ends[1]}
	held := *cmd
	held.Path = childproc.Self()
	// Not in ExtraFiles, whose numbers are fixed: CMD must inherit the
	// descriptors that we inherited, under the same numbers.
	held.Args = append([]string{"redlatch", gateVerb, strconv.Itoa(g.theirs), cmd.Path}, cmd.Args...)
	return &held, g, nil
}

// passed closes the other end here, once the process has been started.
func (g *gate) passed() { unix.Close(g.theirs) }

// open lets the process become CMD, and returns why exec failed, if it did.
func (g *gate) open() error {
	defer g.ours.Close()
	if _, err := g.ours.Write([]byte{0}); err != nil {
		return nil // the process has ended; wait reports how
	}
	reason := make([]byte, 8)
	if _, err := io.ReadFull(g.ours, reason); err != nil {
		return nil // exec has closed the other end
	}
	return syscall.Errno(binary.BigEndian.Uint64(reason))
}

func (g *gate) close() { g.ours.Close() }

// isGate reports whether these are the arguments of a process behind a gate.
func isGate(args []string) bool { return len(args) > 3 && args[0] == gateVerb }

// runGate waits for the gate to open and becomes CMD. It returns if it cannot.
func runGate(args []string) int {
	fd, err := strconv.Atoi(args[1])
	if err != nil {
		return codeUsage
	}
	unix.CloseOnExec(fd)
	for open := make([]byte, 1); ; {
		n, err := unix.Read(fd, open)
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			return CodeCannotRun // redlatch is dead
		}
		break
	}
	err = syscall.Exec(args[2], args[3:], os.Environ())
	if reason, ok := errors.AsType[syscall.Errno](err); ok {
		unix.Write(fd, binary.BigEndian.AppendUint64(nil, uint64(reason)))
	}
	return CodeCannotRun
}
