// Package family measures the locks that several hold at once, slots and
// readers, beside the peers that have them, in other languages too.
//
// Every contender is a process, or a thread of one, that follows orders over
// its standard input and output, a line of JSON each: it reads a Config,
// connects, and answers that it is ready. It then reads Orders. It asks for the
// lock from an order's start to its end, holds it, releases it and asks again.
// At the end it writes its requests, an Answer each, and a last one that says
// that it is done.
package family

import (
	"github.com/redlatch/redlatch/bench/stats"
)

// Config is what a contender's process needs to get ready.
type Config struct {
	Peer      string   `json:"peer"`
	Addresses []string `json:"addresses"`
	// Contenders is how many contenders the process is; First the number of
	// the first of them.
	Contenders int   `json:"contenders"`
	First      int32 `json:"first"`
	// Limit is how many slots there are; 0 for readers and writers.
	Limit int `json:"limit"`
	// WriteEvery makes one of so many requests of a contender a writer's.
	WriteEvery int `json:"write_every"`
	// HeldMS is how long the lock is held each time, TTLMS its time to live.
	HeldMS int `json:"held_ms"`
	TTLMS  int `json:"ttl_ms"`
	// NodeList names the servers for redlatch, if not all contenders reach
	// them by the same addresses.
	NodeList string `json:"node_list,omitempty"`
}

// writes reports whether a contender's n-th request is a writer's. Drivers in
// other languages compute the same.
func (c Config) writes(contender int32, n int) bool {
	return c.WriteEvery > 0 && (n+int(contender))%c.WriteEvery == 0
}

// Order is the time in which contenders want the lock of a name, on the clock
// that all processes share.
type Order struct {
	Name  string `json:"name"`
	Start int64  `json:"start"`
	End   int64  `json:"end"`
}

// Answer is a line that a contender's process writes: that it is ready, a
// request, or that an order is done.
type Answer struct {
	Ready   bool   `json:"ready,omitempty"`
	Version string `json:"version,omitempty"`

	Contender int32 `json:"c"`
	Write     bool  `json:"w"`
	Got       bool  `json:"got"`
	Called    int64 `json:"called"`
	Acquired  int64 `json:"acquired"`
	Released  int64 `json:"released"`

	Done bool `json:"done,omitempty"`
	// Errors counts the calls that failed before the end; Error is the first.
	Errors int    `json:"errors,omitempty"`
	Error  string `json:"error,omitempty"`
}

// request returns the request that the line says.
func (a Answer) request() Request {
	return Request{
		Hold:  stats.Hold{Contender: a.Contender, Got: a.Got, Called: a.Called, Acquired: a.Acquired, Released: a.Released},
		Write: a.Write,
	}
}
