package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/measure"
	"github.com/redlatch/redlatch/bench/system"
)

// table writes a table with a row for each result, if there are any. A row
// begins with the contender and ends with the cell's id; a cell that failed says
// so instead of numbers.
func table(b *strings.Builder, heading, text, columns string, results []measure.Result, cells func(measure.Result) []string) {
	if len(results) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n\n", heading)
	if text != "" {
		fmt.Fprintf(b, "%s\n\n", text)
	}
	columns = " | servers | " + columns + " | cell"
	fmt.Fprintf(b, "| %s |\n|%s\n", columns, strings.Repeat("---|", 1+strings.Count(columns, " | ")))
	for _, x := range results {
		numbers := cells(x)
		if x.Failed != "" {
			numbers = append([]string{"**FAILED**"}, slices.Repeat([]string{"–"}, len(numbers)-1)...)
		}
		name := x.System.Title
		if x.Errors > 0 {
			name += fmt.Sprintf(" (%d calls failed)", x.Errors)
		}
		fmt.Fprintf(b, "| %s | %d | %s | `%s` |\n", name, x.Nodes, strings.Join(numbers, " | "), x.ID())
	}
}

// The floors that pairs are compared with.
var floorScripts, floorPlain = mustFind("floor-scripts"), mustFind("floor-plain")

func mustFind(key string) *system.System {
	s, err := system.Find(key)
	if err != nil {
		panic(err)
	}
	return s
}

func (r *Report) pairTable(b *strings.Builder, kind cell.Kind, heading, text string) {
	table(b, "## "+heading, text,
		"median | p99 | longest | pairs | × floor, same scripts | × floor, plain | commands a pair | client CPU | server CPU",
		r.of(kind), func(x measure.Result) []string {
			p := x.Pair
			beside := func(floor *system.System) string {
				f := r.find(kind, 0, 0, x.Nodes, floor)
				if f == nil || f.Pair.Times.Median == 0 {
					return "–"
				}
				return fmt.Sprintf("%.2f", float64(p.Times.Median)/float64(f.Pair.Times.Median))
			}
			return []string{short(p.Times.Median), short(p.Times.P99), short(p.Times.Max), count(float64(p.Times.Count)),
				beside(floorScripts), beside(floorPlain), digitsOr(p.Commands), short(p.ClientCPU), short(p.ServerCPU)}
		})
}

func (r *Report) ownTable(b *strings.Builder) {
	table(b, "## 64 goroutines on names of their own", "In one process, contenders in turns; the median of the rounds.",
		"pairs a second | of the rounds | commands a pair | client CPU | server CPU",
		r.of(cell.Own), func(x measure.Result) []string {
			o := x.Own
			spread := "–"
			if len(o.Rounds) > 0 {
				spread = count(slices.Min(o.Rounds)) + " to " + count(slices.Max(o.Rounds))
			}
			return []string{count(o.PerSecond), spread, digitsOr(o.Commands), short(o.ClientCPU), short(o.ServerCPU)}
		})
}

// contendedTables writes a table for each number of contenders and time held.
func (r *Report) contendedTables(b *strings.Builder, kind cell.Kind, heading string) {
	var headings []string
	groups := map[string][]measure.Result{}
	for _, x := range r.of(kind) {
		processes, threads := x.Processes()
		who := fmt.Sprintf("%d processes", processes)
		if threads > 1 {
			who = fmt.Sprintf("%d contenders, %d processes of %d", x.Count, processes, threads)
		}
		h := fmt.Sprintf("### %s, %d ms held", who, x.Held.Milliseconds())
		if groups[h] == nil {
			headings = append(headings, h)
		}
		groups[h] = append(groups[h], x)
	}
	if len(headings) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\nProcesses of their own on one name, which begin together and lock, hold and release until the time is over. "+
		"A hand-over is an acquisition by another contender than the holder before, and takes from the calling of the release to the next holder running: "+
		"who mostly acquires again what it just released has many acquisitions and few hand-overs. Waits of those who were still waiting at the end count with what they had waited. CPU and commands are for each acquisition, where it is not said otherwise. "+
		"Every history was checked for holds that overlap.\n", heading)
	for _, h := range headings {
		table(b, h, "", "hand-overs a second | acquisitions a second | hand-over median | hand-over p99 | wait median | wait p99 | longest wait | "+
			"Jain | commands a hand-over | commands | client CPU | server CPU | held, median | raw round trip meanwhile",
			groups[h], func(x measure.Result) []string {
				c := x.Contended
				never := ""
				if c.NeverServed > 0 {
					never = fmt.Sprintf(" (%d never served)", c.NeverServed)
				}
				return []string{count(c.HandOversRate), count(c.AcquisitionsRate),
					short(c.HandOver.Median), short(c.HandOver.P99), short(c.Wait.Median), short(c.Wait.P99), short(c.Wait.Max),
					fmt.Sprintf("%.3f%s", c.Jain, never), digitsOr(c.PerHandOver), digitsOr(c.Commands), short(c.ClientCPU), short(c.ServerCPU),
					short(c.Held.Median), short(c.RoundTrip.Median)}
			})
	}
}

func (r *Report) waitingTable(b *strings.Builder) {
	table(b, "## Waiting for a lock that is kept", "Processes that wait, while another holds the lock all the time. The holder's own commands are included.",
		"waiters | commands a waiter and second | client CPU a waiter and second",
		r.of(cell.Waiting), func(x measure.Result) []string {
			return []string{fmt.Sprint(x.Count), fmt.Sprintf("%.2f", x.Waiting.Commands), short(x.Waiting.ClientCPU)}
		})
}

func (r *Report) leasesTable(b *strings.Builder) {
	table(b, "## Held leases", fmt.Sprintf("One process keeps them alive, with a time to live of %v, and does nothing else. "+
		"redsync and bsm/redislock have no keep-alive. etcd keeps all locks of a session alive by one lease.", system.TTL),
		"leases | goroutines more | heap a lease | stacks a lease | commands a second | client CPU a second | server CPU a second",
		r.of(cell.Leases), func(x measure.Result) []string {
			l := x.Leases
			return []string{fmt.Sprint(x.Count), count(float64(l.Goroutines)), count(l.Heap) + " B", count(l.Stack) + " B",
				count(l.Commands), short(l.ClientCPU), short(l.ServerCPU)}
		})
}
