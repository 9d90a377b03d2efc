//go:build !linux

package server

import "syscall"

// ownGroup keeps a Ctrl-C at the terminal from the servers, which we end
// ourselves.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
