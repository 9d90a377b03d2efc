package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/measure"
	"github.com/redlatch/redlatch/bench/system"
)

// Markdown returns the whole report; with plots, it refers to them.
func (r *Report) Markdown(plots bool) string {
	var b strings.Builder
	r.head(&b)
	b.WriteString("\n## What must be reached\n\n")
	b.WriteString(r.GoalTable())
	if failed := r.failed(); failed != "" {
		b.WriteString("\n## Failed cells\n\n" + failed)
	}
	if errs := r.errors(); errs != "" {
		b.WriteString("\n## Calls that failed\n\nThe contender asked again, and its wait went on.\n\n" + errs)
	}
	if plots {
		b.WriteString("\n## Pictures\n\n")
		for _, p := range r.plots() {
			fmt.Fprintf(&b, "![%s](%s)\n\n", p.title, p.file)
		}
	}
	r.pairTable(&b, cell.Pair, "Uncontended pair",
		"One goroutine locks and releases; all contenders take turns of "+
			"20 pairs, so that they meet the same disturbances. The floors are raw sockets.")
	r.ownTable(&b)
	r.contendedTables(&b, cell.Contended, "Contended")
	r.waitingTable(&b)
	r.pairTable(&b, cell.FrozenPair, "One of five servers frozen: uncontended pair",
		"SIGSTOP: its connections stay open, and nothing is answered.")
	r.contendedTables(&b, cell.FrozenContended, "One of five servers frozen: contended")
	r.leasesTable(&b)
	r.notes(&b)
	return b.String()
}

func (r *Report) head(b *strings.Builder) {
	m := r.Machine
	b.WriteString("# redlatch beside its peers\n\n")
	if r.Settings.Quick {
		b.WriteString("**A smoke run with short times: its numbers show that everything works, and not much more.**\n\n")
	}
	fmt.Fprintf(b, "Measured in one run of %s on one machine, clients and servers sharing its cores.\n\n", r.Took)
	fmt.Fprintf(b, "| | |\n|---|---|\n| date | %s |\n| processor | %d × %s |\n| memory | %s |\n| kernel | %s |\n| load before | %s |\n| Go | %s |\n| Redis | %s, `--save '' --appendonly no` |\n| etcd | %s, three members |\n",
		m.Date, m.Cores, m.CPU, m.Memory, m.Kernel, m.Load, m.Go, m.Redis, m.Etcd)
	for _, path := range compared {
		if v, ok := m.Versions[path]; ok {
			fmt.Fprintf(b, "| %s | %s |\n", path, v)
		}
	}
	for _, t := range r.RoundTrips {
		fmt.Fprintf(b, "| raw round trip of a tiny script, %s | median %s, p99 %s |\n", servers(t.Nodes), short(t.Times.Median), short(t.Times.P99))
	}
	for _, x := range r.of(cell.Pair) {
		if x.Pair != nil && x.Pair.Acquire != nil {
			fmt.Fprintf(b, "| raw round trip of redlatch's acquire script, %s | median %s, p99 %s |\n", servers(x.Nodes), short(x.Pair.Acquire.Median), short(x.Pair.Acquire.P99))
		}
	}
	fmt.Fprintf(b, "\nThe whole: `make bench`, or in `bench/`: `go run ./cmd/bench`. One cell, by the id in its row: `%s`.\n", Command("ID", r.Settings.Quick))
}

// failed lists the cells that have no valid result.
func (r *Report) failed() string {
	var b strings.Builder
	for _, x := range r.Results {
		if x.Failed != "" {
			fmt.Fprintf(&b, "- **`%s`: %s**\n", x.ID, strings.ReplaceAll(x.Failed, "\n", " "))
		}
	}
	return b.String()
}

// errors lists the cells in which calls failed.
func (r *Report) errors() string {
	var b strings.Builder
	for _, x := range r.Results {
		if x.Errors > 0 {
			text := []rune(strings.ReplaceAll(x.Error, "\n", " "))
			fmt.Fprintf(&b, "- `%s`: %d, the first: %s\n", x.ID, x.Errors, string(text[:min(len(text), 300)]))
		}
	}
	return b.String()
}

// table writes a table if it has rows.
func table(b *strings.Builder, heading, text string, columns []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n\n", heading)
	if text != "" {
		fmt.Fprintf(b, "%s\n\n", text)
	}
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

// row begins a row with the contender and ends it with the id; a cell that
// failed says so instead of numbers.
func row(x measure.Result, width int, cells ...string) []string {
	name := title(x.System)
	if x.Failed != "" {
		cells = make([]string, width)
		for i := range cells {
			cells[i] = "–"
		}
		cells[0] = "**FAILED**"
	}
	if x.Errors > 0 {
		name += fmt.Sprintf(" (%d calls failed)", x.Errors)
	}
	out := append([]string{name, fmt.Sprint(x.Nodes)}, cells...)
	return append(out, "`"+x.ID+"`")
}

func (r *Report) pairTable(b *strings.Builder, kind cell.Kind, heading, text string) {
	var rows [][]string
	for _, x := range r.of(kind) {
		const width = 9
		if x.Pair == nil {
			x.Pair = &measure.Pair{}
		}
		p := x.Pair
		beside := func(floor string) string {
			f := r.find(cell.Cell{Kind: kind, Nodes: x.Nodes, System: floor})
			if f == nil || f.Pair == nil || f.Pair.Times.Median == 0 {
				return "–"
			}
			return fmt.Sprintf("%.2f", float64(p.Times.Median)/float64(f.Pair.Times.Median))
		}
		rows = append(rows, row(x, width, short(p.Times.Median), short(p.Times.P99), short(p.Times.Max), count(float64(p.Times.Count)), beside("floor-scripts"), beside("floor-plain"),
			digitsOr(p.Commands), short(p.ClientCPU), short(p.ServerCPU)))
	}
	table(b, "## "+heading, text,
		[]string{"", "servers", "median", "p99", "longest", "pairs", "× floor, same scripts", "× floor, plain", "commands a pair", "client CPU", "server CPU", "cell"}, rows)
}

// digitsOr is a number, or a dash for nothing.
func digitsOr(f float64) string {
	if f == 0 {
		return "–"
	}
	return digits(f)
}

func (r *Report) ownTable(b *strings.Builder) {
	var rows [][]string
	for _, x := range r.of(cell.Own) {
		if x.Own == nil {
			x.Own = &measure.Own{}
		}
		o := x.Own
		spread := "–"
		if len(o.Rounds) > 0 {
			spread = count(slices.Min(o.Rounds)) + " to " + count(slices.Max(o.Rounds))
		}
		rows = append(rows, row(x, 5, count(o.PerSecond), spread, digitsOr(o.Commands), short(o.ClientCPU), short(o.ServerCPU)))
	}
	table(b, "## 64 goroutines on names of their own", "In one process, contenders in turns; the median of the rounds.",
		[]string{"", "servers", "pairs a second", "of the rounds", "commands a pair", "client CPU", "server CPU", "cell"}, rows)
}

func (r *Report) contendedTables(b *strings.Builder, kind cell.Kind, heading string) {
	type situation struct {
		count int
		held  string
	}
	var order []situation
	groups := map[situation][][]string{}
	for _, x := range r.of(kind) {
		s := situation{x.Count, fmt.Sprintf("%d ms", x.Held.Milliseconds())}
		if _, known := groups[s]; !known {
			order = append(order, s)
		}
		c := x.Contended
		if c == nil {
			c = &measure.Contended{}
		}
		never := ""
		if c.NeverServed > 0 {
			never = fmt.Sprintf(" (%d never served)", c.NeverServed)
		}
		meanwhile := "–"
		if c.RoundTrip != nil {
			meanwhile = short(c.RoundTrip.Median)
		}
		groups[s] = append(groups[s], row(x, 14, count(c.HandOversRate), count(c.AcquisitionsRate),
			short(c.HandOver.Median), short(c.HandOver.P99), short(c.Wait.Median), short(c.Wait.P99), short(c.Wait.Max),
			fmt.Sprintf("%.3f%s", c.Jain, never), digitsOr(c.PerHandOver), digitsOr(c.Commands), short(c.ClientCPU), short(c.ServerCPU),
			short(c.Held.Median), meanwhile))
	}
	if len(order) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\nProcesses of their own on one name, which begin together and lock, hold and release until the time is over. "+
		"A hand-over is an acquisition by another contender than the holder before, and takes from the calling of the release to the next holder running: "+
		"who mostly acquires again what it just released has many acquisitions and few hand-overs. Waits of those who were still waiting at the end count with what they had waited. CPU and commands are for each acquisition, where it is not said otherwise. "+
		"Every history was checked for holds that overlap.\n", heading)
	for _, s := range order {
		processes, threads := cell.Cell{Count: s.count}.Processes()
		who := fmt.Sprintf("%d processes", processes)
		if threads > 1 {
			who = fmt.Sprintf("%d contenders, %d processes of %d", s.count, processes, threads)
		}
		table(b, fmt.Sprintf("### %s, %s held", who, s.held), "",
			[]string{"", "servers", "hand-overs a second", "acquisitions a second", "hand-over median", "hand-over p99", "wait median", "wait p99", "longest wait",
				"Jain", "commands a hand-over", "commands", "client CPU", "server CPU", "held, median", "raw round trip meanwhile", "cell"}, groups[s])
	}
}

func (r *Report) waitingTable(b *strings.Builder) {
	var rows [][]string
	for _, x := range r.of(cell.Waiting) {
		w := x.Waiting
		if w == nil {
			w = &measure.Waiting{}
		}
		rows = append(rows, row(x, 3, fmt.Sprint(x.Count), fmt.Sprintf("%.2f", w.Commands), short(w.ClientCPU)))
	}
	table(b, "## Waiting for a lock that is kept", "Processes that wait, while another holds the lock all the time. The holder's own commands are included.",
		[]string{"", "servers", "waiters", "commands a waiter and second", "client CPU a waiter and second", "cell"}, rows)
}

func (r *Report) leasesTable(b *strings.Builder) {
	var rows [][]string
	for _, x := range r.of(cell.Leases) {
		l := x.Leases
		if l == nil {
			l = &measure.Leases{}
		}
		rows = append(rows, row(x, 7, fmt.Sprint(x.Count), count(float64(l.Goroutines)), count(l.Heap)+" B", count(l.Stack)+" B",
			count(l.Commands), short(l.ClientCPU), short(l.ServerCPU)))
	}
	table(b, "## Held leases", fmt.Sprintf("One process keeps them alive, with a time to live of %v, and does nothing else. "+
		"redsync and bsm/redislock have no keep-alive. etcd keeps all locks of a session alive by one lease.", system.TTL),
		[]string{"", "servers", "leases", "goroutines more", "heap a lease", "stacks a lease", "commands a second", "client CPU a second", "server CPU a second", "cell"}, rows)
}

func (r *Report) notes(b *strings.Builder) {
	fmt.Fprintf(b, "\n## The contenders and their settings\n\nAll with a time to live of %v, and all waiting until they have the lock.\n\n", system.TTL)
	for _, s := range system.All() {
		fmt.Fprintf(b, "- **%s** (`%s`): %s.\n", s.Title, s.Key, s.Note)
	}
	b.WriteString("\nCommands are those that clients sent over their connections; a script is one, whatever it runs inside. " +
		"With etcd they are gRPC messages from clients, those on streams included; what its members say to each other is not. " +
		"Server CPU is that of all servers together.\n")
}
