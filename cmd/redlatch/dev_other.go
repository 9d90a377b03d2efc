//go:build unix && !linux

package main

import "syscall"

// endWithUs does nothing: only Linux ends a process with its parent.
func endWithUs(*syscall.SysProcAttr) {}
