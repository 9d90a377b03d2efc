package childproc

import "syscall"

// endWithUs has the kernel kill a process if we are killed ourselves.
func endWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
