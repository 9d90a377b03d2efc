package server

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/redlatch/redlatch/bench/link"
)

// Linked is servers behind links.
type Linked struct {
	*Redis
	command   *exec.Cmd
	input     io.Closer
	addresses []string
}

// Link starts links to the servers, in a process of their own.
func Link(r *Redis, c link.Config) (*Linked, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c.Servers = r.Addresses()
	l := &Linked{Redis: r, command: exec.Command(self, link.Argument)}
	l.command.Stderr = os.Stderr
	in, err := l.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := l.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.command.Start(); err != nil {
		return nil, err
	}
	l.input = in
	if err = json.NewEncoder(in).Encode(c); err == nil {
		err = json.NewDecoder(out).Decode(&l.addresses)
	}
	if err != nil {
		l.Stop()
		return nil, fmt.Errorf("links: %w", err)
	}
	return l, nil
}

// Addresses returns host:port of each link.
func (l *Linked) Addresses() []string { return l.addresses }

// Stop ends the links, and the servers.
func (l *Linked) Stop() {
	l.input.Close()
	l.command.Wait()
	l.Redis.Stop()
}
