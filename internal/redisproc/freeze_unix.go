//go:build unix

package redisproc

import "syscall"

// Freeze stops the process where it is: connections stay open, and nothing is
// answered.
func (s *Server) Freeze() error { return s.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (s *Server) Thaw() error { return s.Signal(syscall.SIGCONT) }
