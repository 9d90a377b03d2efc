// Package callerreads lets a caller read the reply that it waits for, on its own
// goroutine, instead of being woken by the goroutine that reads for all.
package callerreads

import "time"

// Lender is implemented by a node, and by its driver, whose replies a caller may
// read.
type Lender interface {
	// Lend makes the caller the one that reads all replies of a connection. It
	// returns nil if others need them. The caller must send its request and then
	// read, soon: nobody else reads before that has returned.
	Lend() Loan
}

// Prompt is implemented by a node of which callers may wait for Do: it returns when its
// context ends.
type Prompt interface{ Prompt() bool }

// Loan reads until done has something, or nothing is to be read, but no longer than
// limit, and for about a millisecond at most. What has not arrived by then is read as
// if nobody had borrowed the connection.
type Loan func(done <-chan struct{}, limit time.Duration)
