// Package process starts programs that are given lines of JSON on their standard
// input, and answer so on their standard output.
package process

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/redlatch/redlatch/test/bench/clock"
)

// Process is a program that runs.
type Process struct {
	*json.Encoder // what it is given
	*json.Decoder // what it answers
	cmd           *exec.Cmd
	in            io.Closer
	stderr        bytes.Buffer
}

// Start starts a program, gives it the first line, and waits for the answer.
func Start(cmd *exec.Cmd, first, answer any) (*Process, error) {
	p := &Process{cmd: cmd}
	cmd.Stderr = &p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.in, p.Encoder, p.Decoder = in, json.NewEncoder(in), json.NewDecoder(out)
	if err = p.Encode(first); err == nil {
		err = p.Decode(answer)
	}
	if err != nil {
		return nil, p.Explain(err)
	}
	return p, nil
}

// CPU returns what it has used since it started.
func (p *Process) CPU() time.Duration { return clock.OfProcess(p.cmd.Process.Pid) }

// Kill ends it.
func (p *Process) Kill() { p.cmd.Process.Kill() }

// Stop ends it by its own id, and waits until it has ended.
func (p *Process) Stop() {
	p.Kill()
	p.in.Close()
	p.cmd.Wait()
}

// Explain ends it, and adds to an error what it wrote to its standard error.
func (p *Process) Explain(err error) error {
	p.Stop() // until then it may still write
	text := bytes.TrimSpace(p.stderr.Bytes())
	return fmt.Errorf("%s: %w: %s", p.cmd.Path, err, text[:min(len(text), 2000)])
}
