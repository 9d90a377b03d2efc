// Package childproc starts processes that end with us.
package childproc

import (
	"os/exec"
	"syscall"
)

// Apart puts a process into a group of its own, so that a Ctrl-C reaches only
// us.
func Apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Start starts a process and returns a function that waits for its end.
func Start(cmd *exec.Cmd) (wait func() error, err error) { return cmd.Wait, cmd.Start() }
