//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// answer is what an operator types, after a function was called.
type answer struct {
	io.Reader
	before func()
}

func (a *answer) Read(p []byte) (int, error) {
	if a.before != nil {
		a.before()
		a.before = nil
	}
	return a.Reader.Read(p)
}

// breakAt runs break with an operator who answers the question.
func breakAt(nodes, name string, in io.Reader) (string, error) {
	var out bytes.Buffer
	cmd := newBreak(&reporter{w: io.Discard})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--nodes", nodes, name})
	cmd.SetIn(in)
	cmd.SetOut(&out)
	err := cmd.Execute()
	return out.String(), err
}

func TestBreakLeavesAloneWhoWasNotShown(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	nodes := strings.Join(servertest.Addresses(servers), ",")
	for _, s := range servers {
		s.Do("SET", "job", "another client's", "PX", "60000")
	}
	out, err := breakAt(nodes, "job", &answer{strings.NewReader("y\n"), func() {
		for _, s := range servers {
			s.Do("DEL", "job")
		}
		on(nodes).run(t, 0, "lock -n --label later job")
	}})
	if err == nil || outcomeOf(err).code != exitHeld || !strings.Contains(err.Error(), "/later") {
		t.Errorf("break of what changed hands: %v, %s", err, out)
	}
	if got := servers[0].Do("GET", "job"); !strings.Contains(got, "/later") {
		t.Errorf("the later holder has lost its lock to %q", got)
	}
}

func TestBreakIsGivenUpAtItsQuestion(t *testing.T) {
	server := servertest.Redis(t, 1)[0]
	handleOf(t, server.URL(), "job")
	silent, typed := io.Pipe()
	defer typed.Close()
	_, err := breakAt(server.URL(), "job", &answer{silent, func() { syscall.Kill(os.Getpid(), syscall.SIGINT) }})
	if err == nil || outcomeOf(err).code != 130 || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("break that was interrupted: %v", err)
	}
	if server.Do("EXISTS", "job") != "1" {
		t.Error("the lock is broken")
	}
}
