// Package report makes of results what people read: tables, and a check of the
// goals.
package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/measure"
	"github.com/redlatch/redlatch/bench/system"
)

// Report is a run.
type Report struct {
	Machine    Machine
	Settings   cell.Settings
	Took       time.Duration
	RoundTrips []measure.RoundTrip
	Results    []measure.Result
}

// Markdown returns the whole report.
func (r *Report) Markdown() string {
	var b strings.Builder
	r.head(&b)
	b.WriteString("\n## What must be reached\n\n" + r.GoalTable())
	r.failures(&b)
	r.pairTable(&b, cell.Pair, "Uncontended pair",
		"One goroutine locks and releases; all contenders take turns of "+
			"20 pairs, so that they meet the same disturbances. The floors are raw sockets.")
	r.pairTable(&b, cell.Scripts, "The scripts alone",
		"What a pair sends, over raw sockets, with the guard on: one request in flight to each server, and sixteen. Times and costs are for each pair.")
	r.ownTable(&b)
	r.contendedTables(&b, cell.Contended, "Contended")
	r.waitingTable(&b)
	r.pairTable(&b, cell.FrozenPair, "One of five servers frozen: uncontended pair",
		"SIGSTOP: its connections stay open, and nothing is answered.")
	r.contendedTables(&b, cell.FrozenContended, "One of five servers frozen: contended")
	r.pairTable(&b, cell.LinkedPair, "Over links of 1 ms: uncontended pair",
		"Every connection goes through a process that passes on what is sent half a millisecond later, in both directions.")
	r.contendedTables(&b, cell.LinkedContended, "Over links of 1 ms: contended")
	r.pairTable(&b, cell.SlowPair, "One link of 20 ms, four of 1 ms: uncontended pair", "")
	r.contendedTables(&b, cell.SlowContended, "One link of 20 ms, four of 1 ms: contended")
	r.pairTable(&b, cell.LossyPair, "Over links that are lost now and then: uncontended pair",
		"Each second another link of 1 ms passes on nothing for 200 ms. What was sent meanwhile arrives after that.")
	r.leasesTable(&b)
	notes(&b, system.All, "Commands are those that clients sent over their connections; a script is one, whatever it runs inside. "+
		"With etcd they are gRPC messages from clients, those on streams included; what its members say to each other is not. "+
		"Server CPU is that of all servers together.")
	return b.String()
}

// Databases returns the report of a run on databases.
func (r *Report) Databases() string {
	var b strings.Builder
	r.intro(&b, "# Locks in a database, redlatch beside its peers")
	b.WriteString("\nThe whole: `make bench-databases`, or in `bench/`: `go run ./cmd/bench -databases`.\n")
	r.failures(&b)
	r.pairTable(&b, cell.Pair, "Uncontended pair", "One goroutine locks and releases; the contenders of a database take turns of 20 pairs.")
	r.contendedTables(&b, cell.Contended, "Contended")
	r.waitingTable(&b)
	notes(&b, system.Databases, "Commands are the statements that the server executed: a transaction that a client begins and commits by itself has two more. "+
		"The servers do not sync to disk, so the disk is in none of the numbers. Server CPU is that of all processes of the server.")
	return b.String()
}

// intro writes the heading, and where it was measured.
func (r *Report) intro(b *strings.Builder, heading string) {
	b.WriteString(heading + "\n\n")
	if r.Settings.Quick {
		b.WriteString("**A smoke run with short times: its numbers show that everything works, and not much more.**\n\n")
	}
	fmt.Fprintf(b, "Measured in one run of %s on one machine, clients and servers sharing its cores.\n\n", r.Took.Round(time.Second))
	b.WriteString("| | |\n|---|---|\n")
	for _, line := range r.Machine {
		fmt.Fprintf(b, "| %s | %s |\n", line[0], line[1])
	}
}

func (r *Report) head(b *strings.Builder) {
	r.intro(b, "# redlatch beside its peers")
	command := "go run ./cmd/bench -cell ID"
	if r.Settings.Quick {
		command = "go run ./cmd/bench -quick -cell ID"
	}
	for _, t := range r.RoundTrips {
		fmt.Fprintf(b, "| raw round trip of a tiny script, %s | median %s, p99 %s |\n", servers(t.Nodes), short(t.Times.Median), short(t.Times.P99))
	}
	for _, x := range r.of(cell.Pair) {
		if a := x.Pair.Acquire; a.Count > 0 {
			fmt.Fprintf(b, "| raw round trip of redlatch's acquire script, %s | median %s, p99 %s |\n", servers(x.Nodes), short(a.Median), short(a.P99))
		}
	}
	fmt.Fprintf(b, "\nThe whole: `make bench`, or in `bench/`: `go run ./cmd/bench`. One cell, by the id in its row: `%s`.\n", command)
}

// failures lists the cells that have no valid result, and those in which calls
// failed.
func (r *Report) failures(b *strings.Builder) {
	var failed, errs strings.Builder
	line := func(text string) string { return strings.ReplaceAll(text, "\n", " ") }
	for _, x := range r.Results {
		if x.Failed != "" {
			fmt.Fprintf(&failed, "- **`%s`: %s**\n", x.ID(), line(x.Failed))
		}
		if x.Errors > 0 {
			text := []rune(line(x.Error))
			fmt.Fprintf(&errs, "- `%s`: %d, the first: %s\n", x.ID(), x.Errors, string(text[:min(len(text), 300)]))
		}
	}
	if failed.Len() > 0 {
		b.WriteString("\n## Failed cells\n\n" + failed.String())
	}
	if errs.Len() > 0 {
		b.WriteString("\n## Calls that failed\n\nThe contender asked again, and its wait went on.\n\n" + errs.String())
	}
}

// find returns the result of a cell, if it was measured and is valid. etcd has
// its own number of servers.
func (r *Report) find(kind cell.Kind, count int, held time.Duration, nodes int, s *system.System) *measure.Result {
	for i := range r.Results {
		x := &r.Results[i]
		if x.Kind == kind && x.Count == count && x.Held == held && x.System == s && x.Failed == "" &&
			(x.Nodes == nodes || s.Store == system.Etcd) {
			return x
		}
	}
	return nil
}

// of returns the results of a kind, in the order of the run.
func (r *Report) of(kind cell.Kind) []measure.Result {
	var list []measure.Result
	for _, x := range r.Results {
		if x.Kind == kind {
			list = append(list, x)
		}
	}
	return list
}

func servers(n int) string {
	if n == 1 {
		return "1 server"
	}
	return fmt.Sprintf("%d servers", n)
}

// notes describes contenders; counted says what is counted.
func notes(b *strings.Builder, contenders []*system.System, counted string) {
	fmt.Fprintf(b, "\n## The contenders and their settings\n\nThose that have a TTL have %v. All wait until they have the lock.\n\n", system.TTL)
	for _, s := range contenders {
		fmt.Fprintf(b, "- **%s** (`%s`): %s.\n", s.Title, s.Key, s.Note)
	}
	b.WriteString("\n" + counted + "\n")
}
