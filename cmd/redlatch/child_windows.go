package main

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// child is CMD, in a job object: everything that it starts belongs to the job,
// and ends with it, or with us. What CMD starts in the first instant, before it
// is put into the job, does not.
//
// Windows has no signals to pass on. Ctrl-C reaches CMD by itself, since it
// shares our console; when the lock is being lost there is no TERM, only the
// KILL.
type child struct {
	job     windows.Handle
	exited  chan ending
	stopped chan os.Signal // never told
}

func startChild(cmd *exec.Cmd, _ *guardian, _ bool) (*child, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	c := &child{job: job, exited: make(chan ending, 1)}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.close()
		return nil, err
	}
	err = cmd.Process.WithHandle(func(handle uintptr) {
		if err := windows.AssignProcessToJobObject(job, windows.Handle(handle)); err != nil {
			cmd.Process.Kill() // better no CMD than one that we cannot end
		}
	})
	if err != nil {
		cmd.Process.Kill()
	}
	go func() {
		cmd.Wait()
		c.exited <- ending{code: cmd.ProcessState.ExitCode()}
	}()
	return c, nil
}

// left ends what CMD left behind, and reports that nothing is: the job does
// not wait.
func (c *child) left() bool {
	c.kill()
	return false
}

func (c *child) terminate() error { return nil }

func (c *child) kill() error { return windows.TerminateJobObject(c.job, exitCannotRun) }

func (c *child) forward(os.Signal) {}

func (c *child) wantsTerminal(os.Signal) bool { return false }

func (c *child) isJobStop(os.Signal) bool { return false }

func (c *child) keyed(syscall.Signal) bool { return false }

func (c *child) pause(bool) bool { return false }

func (c *child) resume() {}

func (c *child) close() { windows.CloseHandle(c.job) }

func forwarded() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func ends(os.Signal) bool { return true }

// dieBy does nothing: Windows has no signals to die by.
func dieBy(syscall.Signal, bool) {}

// session is one for all.
func session() int { return 0 }

func stopping() []os.Signal { return nil }

func isStop(os.Signal) bool { return false }
