//go:build unix && !linux

package childproc

import "syscall"

// endWithUs does nothing: only Linux ends a process with its parent.
func endWithUs(*syscall.SysProcAttr) {}
