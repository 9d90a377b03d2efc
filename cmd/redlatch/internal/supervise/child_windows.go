package supervise

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// child is CMD, in a job object: everything that it starts belongs to the job,
// and ends with it, or with us. What CMD starts before it is put into the job
// does not.
//
// Windows has no signals to forward. CMD gets Ctrl-C by itself, since it shares
// our console. When the lease is being lost there is no TERM, only the KILL.
type child struct {
	job     windows.Handle
	process int // its id
	exited  chan ending
	stopped chan os.Signal // never gets one
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
	c.process = cmd.Process.Pid
	err = cmd.Process.WithHandle(func(handle uintptr) {
		if err := windows.AssignProcessToJobObject(job, windows.Handle(handle)); err != nil {
			cmd.Process.Kill() // we could not end it later
		}
	})
	if err != nil {
		cmd.Process.Kill()
	}
	go func() {
		cmd.Wait()
		c.exited <- ending{Exit: ExitOf(cmd.ProcessState)}
	}()
	return c, nil
}

// pid is CMD's process id.
func (c *child) pid() int { return c.process }

// left ends what CMD left behind, and returns false: the end of a job is not
// waited for.
func (c *child) left() bool {
	c.kill()
	return false
}

func (c *child) terminate() error { return nil }

func (c *child) kill() error { return windows.TerminateJobObject(c.job, CodeCannotRun) }

func (c *child) forward(os.Signal) {}

func (c *child) wantsTerminal(os.Signal) bool { return false }

func (c *child) isJobStop(os.Signal) bool { return false }

func (c *child) keyed(syscall.Signal) bool { return false }

func (c *child) pause(bool) bool { return false }

func (c *child) resume() {}

func (c *child) close() { windows.CloseHandle(c.job) }

// Forwarded are the signals that we handle while CMD runs.
func Forwarded() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func stops() []os.Signal { return nil }

func isStop(os.Signal) bool { return false }
