//go:build unix

package main

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

const terminateSignal = syscall.SIGTERM

// apart puts a server into a process group of its own: a Ctrl-C is for us, and
// for CMD, which may still need it.
func apart() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	endWithUs(attr)
	return attr
}

// startOwned starts a process that ends with us, and returns what waits for
// its end. The kernel ends it with the thread that started it, so that thread
// must live as long as we do.
func startOwned(cmd *exec.Cmd) (wait func() error, err error) {
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked while the process lives
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
		runtime.UnlockOSThread()
	}()
	return func() error { return <-ended }, <-started
}

// codeOf is the exit code of a process as a shell would say it.
func codeOf(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return exitSignal + int(w.Signal())
	}
	return state.ExitCode()
}
