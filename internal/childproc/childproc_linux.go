package childproc

import "syscall"

// endWithUs asks the kernel to kill a process if we are killed ourselves.
func endWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
