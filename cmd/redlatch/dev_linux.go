package main

import "syscall"

// endWithUs has the kernel kill a server if we are killed ourselves.
func endWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
