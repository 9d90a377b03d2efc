//go:build unix

// Package childproc starts processes that end with us.
package childproc

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Apart puts a process into a group of its own, so that a Ctrl-C reaches only
// us. Where the system can do it, the process is killed if we are.
func Apart() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	endWithUs(attr)
	return attr
}

// Start starts a process and returns a function that waits for its end. The
// kernel kills the process when the thread that started it ends, so that thread
// must live as long as we do.
func Start(cmd *exec.Cmd) (wait func() error, err error) {
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked while the process runs
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
		runtime.UnlockOSThread()
	}()
	return func() error { return <-ended }, <-started
}
