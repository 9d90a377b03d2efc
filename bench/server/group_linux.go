package server

import "syscall"

// ownGroup keeps a Ctrl-C at the terminal from the servers, which we end
// ourselves, and has them end with us if we are killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
