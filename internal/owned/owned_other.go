//go:build unix && !linux

package owned

import "syscall"

// endWithUs does nothing: only Linux ends a process with its parent.
func endWithUs(*syscall.SysProcAttr) {}
