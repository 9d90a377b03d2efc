package demo

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/childproc"
	"github.com/redlatch/redlatch/store/memory"
)

// verb is the first argument of a process of the demo, as ps shows it.
const verb = "__demo"

// what is what a process says.
type what string

const (
	ready   what = "ready"   // a node listens on Address
	waits   what = "waits"   // Holder has the lock, for Left
	about   what = "about"   // has the lock and the balance, and is about to write
	written what = "written" // the account accepted the write
	refused what = "refused" // the account refused the write
	ended   what = "ended"   // the lock is released
	lost    what = "lost"    // the lock was lost while it was used
	outage  what = "outage"  // too few nodes for a lock
)

// event is what a process says. Times are as the process measured them.
type event struct {
	What           what
	Address        string
	Token, Highest redlatch.Token
	Was, Is        int // the balance
	Holder         string
	Left           time.Duration
	Answered, Need int // nodes
	Text           string
}

// Child runs a process that Run has started from this program. It returns false
// if the arguments are not those of one. The main function calls it before it
// parses arguments.
func Child(args []string) (code int, is bool) {
	if len(args) == 0 || args[0] != verb {
		return 0, false
	}
	if err := runChild(args[1:]); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func runChild(args []string) error {
	out := gob.NewEncoder(os.Stdout)
	// say goes on when the story has answered. It ends with the story: then
	// there is no more input.
	say := func(e event) error {
		if err := out.Encode(e); err != nil {
			return err
		}
		_, err := io.ReadFull(os.Stdin, make([]byte, 1))
		return err
	}
	if len(args) == 0 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go serveNode(l, memory.New(nil))
		return say(event{What: ready, Address: l.Addr().String()}) // which is never answered
	}
	var o order
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	return runClient(o, say)
}

// process is a process of the demo, seen from the story.
type process struct {
	name   string
	cmd    *exec.Cmd
	in     io.Writer
	wait   func() error // for its end
	killed atomic.Bool  // by us
}

// report is what a process said, or the error with which it ended.
type report struct {
	from *process
	event
	err error
}

// start starts a process, with the arguments of a node or a client. It reports
// to the channel, which must have room.
func start(name string, to chan<- report, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(childproc.Self(), append([]string{verb}, args...)...)}
	p.cmd.Args[0] = os.Args[0]
	var complaint strings.Builder
	p.cmd.Stderr, p.cmd.SysProcAttr = &complaint, childproc.Apart()
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.in, p.cmd.Stdout = in, write
	wait, err := childproc.Start(p.cmd)
	write.Close()
	if err != nil {
		read.Close()
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	p.wait = sync.OnceValue(wait)
	go func() {
		defer read.Close()
		said := gob.NewDecoder(read)
		for {
			r := report{from: p}
			if said.Decode(&r.event) != nil {
				break
			}
			to <- r
		}
		if err := p.wait(); err != nil && !p.killed.Load() {
			to <- report{from: p, err: fmt.Errorf("%s failed: %w: %s", name, err, strings.TrimSpace(complaint.String()))}
		}
	}()
	return p, nil
}

// answer lets the process go on. If it is gone, it has reported that.
func (p *process) answer() { p.in.Write([]byte{'\n'}) }

// kill ends the process as a crash would, and returns when it is gone.
func (p *process) kill() {
	p.killed.Store(true)
	p.cmd.Process.Kill()
	p.wait()
}

func (p *process) pid() int { return p.cmd.Process.Pid }
