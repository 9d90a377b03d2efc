package main

import (
	"os"
	"os/exec"
	"syscall"
)

// There is no asking a process to end.
const terminateSignal = syscall.SIGKILL

func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func startOwned(cmd *exec.Cmd) (wait func() error, err error) {
	return cmd.Wait, cmd.Start()
}

func codeOf(state *os.ProcessState) int { return state.ExitCode() }
