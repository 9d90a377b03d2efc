package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/owned"
)

// startLimit is how long servers may take until they answer.
const startLimit = 20 * time.Second

// devQuorum is a number of servers of our own.
type devQuorum struct {
	program string
	dir     string
	servers []*devServer
	died    chan error // gets one when a server ends by itself
}

// devServer is one of them.
type devServer struct {
	port int
	cmd  *exec.Cmd
	log  string
	gone chan struct{} // closed when the process has ended
}

func (s *devServer) url() string { return "redis://127.0.0.1:" + strconv.Itoa(s.port) }

func (q *devQuorum) addresses() []string {
	var all []string
	for _, s := range q.servers {
		all = append(all, s.url())
	}
	return all
}

// start starts the servers, waits until they answer, and declares them new.
func (q *devQuorum) start(ctx context.Context, n, port int) error {
	var err error
	if q.dir, err = os.MkdirTemp("", "redlatch-dev-"); err != nil {
		return fmt.Errorf("there is no folder for the servers: %w", err)
	}
	q.died = make(chan error, n)
	for i := range n {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p := port + i
		if port == 0 {
			if p, err = freePort(); err != nil {
				return err
			}
		} else if err := portIsFree(p); err != nil {
			return err
		}
		if err := q.startServer(i, p); err != nil {
			return err
		}
	}
	return q.declare(ctx)
}

func (q *devQuorum) startServer(i, port int) error {
	dir := filepath.Join(q.dir, strconv.Itoa(i+1))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	s := &devServer{port: port, log: filepath.Join(dir, "log"), gone: make(chan struct{})}
	s.cmd = exec.Command(q.program, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--maxmemory-policy", "noeviction", "--logfile", s.log)
	s.cmd.SysProcAttr = owned.Apart() // CMD gets a Ctrl-C too, and may still need the server
	wait, err := owned.Start(s.cmd)
	if err != nil {
		return fmt.Errorf("%s cannot be started: %w", q.program, err)
	}
	q.servers = append(q.servers, s)
	go func() {
		err := wait()
		close(s.gone)
		q.died <- fmt.Errorf("the server on port %d ended by itself (%v): %s", s.port, err, s.lastWords())
	}()
	return nil
}

// lastWords is the last line of a server's log.
func (s *devServer) lastWords() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return "it left no log"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// declare waits until all answer, and marks them as new.
func (q *devQuorum) declare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		err := q.initialise(ctx)
		if err == nil {
			return nil
		}
		select {
		case died := <-q.died:
			return died
		case <-ctx.Done():
			return fmt.Errorf("the servers do not answer: %w", err)
		case <-time.After(10 * time.Millisecond): // there is no event to wait for
		}
	}
}

func (q *devQuorum) initialise(ctx context.Context) error {
	nodes, err := openNodes(q.addresses())
	if err != nil {
		return err
	}
	client, err := redlatch.New(nodes, redlatch.Options{Guard: redlatch.GuardOn, NodeTimeout: time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = admin.New(client).Init(ctx, admin.InitOptions{AssumeFresh: true})
	return err
}

// stopLimit is how long servers may take to end.
const stopLimit = 5 * time.Second

// stop ends the servers, each by its own process, and removes their folder.
// Those that are left after a while, or when another signal comes, are killed.
func (q *devQuorum) stop(signals <-chan os.Signal) {
	for _, s := range q.servers {
		s.cmd.Process.Signal(terminateSignal)
	}
	patience := time.After(stopLimit)
	for _, s := range q.servers {
		select {
		case <-s.gone:
			continue
		case <-patience:
		case <-signals:
		}
		for _, left := range q.servers {
			left.cmd.Process.Kill() // no effect on those that are gone
		}
		break
	}
	for _, s := range q.servers {
		<-s.gone
	}
	if q.dir != "" {
		os.RemoveAll(q.dir)
	}
}

// freePort returns a loopback port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("there is no free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func portIsFree(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("port %d is not free; try another --port, or none: %w", port, errors.Unwrap(err))
	}
	return l.Close()
}
