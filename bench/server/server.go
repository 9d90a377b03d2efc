// Package server runs the servers that locks are measured on: real processes
// on free loopback ports, each in a folder of its own.
package server

import (
	"os/exec"
	"regexp"
	"time"
)

// A Backend is the servers that a contender keeps its locks on.
type Backend interface {
	// Addresses returns host:port of each server.
	Addresses() []string
	// Sample reads the counters of all servers.
	Sample() (Sample, error)
	// Stop ends the servers and removes their folders.
	Stop()
}

// Sample is what the servers counted since they started.
type Sample struct {
	// Begun and At are the moments between which it was read, on the shared
	// clock.
	Begun, At int64
	// Commands are the calls by name of the command, all servers together.
	Commands map[string]int64
	// CPU is what the servers used.
	CPU time.Duration
}

// Sub returns what was counted between an earlier sample and this one.
func (s Sample) Sub(earlier Sample) Sample {
	d := Sample{Begun: earlier.At, At: s.Begun, Commands: map[string]int64{}, CPU: s.CPU - earlier.CPU}
	for name, n := range s.Commands {
		if n -= earlier.Commands[name]; n != 0 {
			d.Commands[name] = n
		}
	}
	return d
}

// Version returns the version of an installed server; "" if there is none.
func Version(program string) string {
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		return ""
	}
	return string(regexp.MustCompile(`\d+(\.\d+)+`).Find(out))
}
