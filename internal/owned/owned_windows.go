// Package owned starts processes that end with us.
package owned

import (
	"os/exec"
	"syscall"
)

// Apart puts a process into a group of its own: a Ctrl-C is for us.
func Apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Start starts a process and returns what waits for its end.
func Start(cmd *exec.Cmd) (wait func() error, err error) {
	return cmd.Wait, cmd.Start()
}
