//go:build unix

// Package tempredis starts the servers of redsync's own tests. It has what those
// use of the package of the same name, and takes ports that are free.
package tempredis

import (
	"os"
	"path/filepath"

	"github.com/redlatch/redlatch/internal/redisproc"
)

// Config is what the tests ask for. It is ignored: they ask for fixed ports.
type Config map[string]string

// Server is a redis-server process.
type Server struct{ proc *redisproc.Server }

// Start starts a server and waits until it answers.
func Start(Config) (*Server, error) {
	// Not in the test's own folder: the path of a socket must be short.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		return nil, err
	}
	s := &Server{&redisproc.Server{Dir: dir}}
	if err := s.proc.Start(); err != nil {
		s.Term()
		return nil, err
	}
	return s, nil
}

// Socket returns the path of the socket that redisproc has the server listen on.
func (s *Server) Socket() string { return filepath.Join(s.proc.Dir, "s") }

// Addr returns host:port.
func (s *Server) Addr() string { return s.proc.Addr() }

// Term ends the server.
func (s *Server) Term() error {
	s.proc.Kill()
	return os.RemoveAll(s.proc.Dir)
}
