package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/redisproc"
)

// devQuorum is a number of servers of our own.
type devQuorum struct {
	program string
	dir     string
	servers []*redisproc.Server
	died    chan error // gets an error when a server ends by itself
}

func (q *devQuorum) addresses() []string {
	var all []string
	for _, s := range q.servers {
		all = append(all, s.URL())
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
		s := &redisproc.Server{
			Program: q.program, Dir: filepath.Join(q.dir, strconv.Itoa(i+1)),
			Settings: []string{"--maxmemory-policy", "noeviction"},
		}
		if port != 0 {
			s.Port = port + i
			if err := portIsFree(s.Port); err != nil {
				return err
			}
		}
		q.servers = append(q.servers, s)
	}
	if err := redisproc.StartAll(ctx, q.servers...); err != nil {
		return err
	}
	for _, s := range q.servers {
		go func() { q.died <- s.Wait() }()
	}
	return q.declare(ctx)
}

// declareLimit is how long servers that answer may take to be declared new.
const declareLimit = 20 * time.Second

// declare marks the servers as new.
func (q *devQuorum) declare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, declareLimit)
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
	client, err := redlatch.New(nodes, &redlatch.Options{Guard: redlatch.GuardOn, NodeTimeout: time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = admin.New(client).Init(ctx, &admin.InitOptions{AssumeFresh: true})
	return err
}

// stopLimit is how long servers may take to end.
const stopLimit = 5 * time.Second

// stop ends the servers, each by its own process, and removes their folder.
// Those that are left after a while, or when another signal comes, are killed.
func (q *devQuorum) stop(signals <-chan os.Signal) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, s := range q.servers {
			s.Signal(terminateSignal)
		}
		for _, s := range q.servers {
			s.Wait()
		}
	}()
	select {
	case <-ended:
	case <-time.After(stopLimit):
	case <-signals:
	}
	for _, s := range q.servers {
		s.Kill() // does nothing to those that have ended
	}
	if q.dir != "" {
		os.RemoveAll(q.dir)
	}
}

func portIsFree(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("port %d is not free; try another --port, or none: %w", port, errors.Unwrap(err))
	}
	return l.Close()
}
