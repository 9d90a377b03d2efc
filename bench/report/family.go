package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/family"
	"github.com/redlatch/redlatch/bench/stats"
)

// Family is the report on locks that several hold at once.
type Family struct {
	Machine   Machine
	Times     family.Times
	Took      time.Duration
	Rows      []family.Row
	Crossings []family.Crossings
}

// Err is an error if something was not measured, or if redlatch let in somebody
// that it must not.
func (f *Family) Err() error {
	var errs []error
	for _, r := range f.Rows {
		if r.Failed != "" {
			errs = append(errs, fmt.Errorf("%s: %s", r.ID(), r.Failed))
		} else if r.Ours && r.Seen.Breaks(r.Limit()) {
			errs = append(errs, fmt.Errorf("%s: EXCLUSION BROKEN: %+v", r.ID(), r.Seen))
		}
	}
	for _, c := range f.Crossings {
		if c.Failed != "" {
			errs = append(errs, fmt.Errorf("crossing/%s: %s", c.Key, c.Failed))
		} else if c.Ours && c.Above() > 0 {
			errs = append(errs, fmt.Errorf("crossing/%s: EXCLUSION BROKEN: holders %v", c.Key, c.Holders))
		}
	}
	return errors.Join(errs...)
}

// Markdown is the page.
func (f *Family) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Slots and readers beside their peers\n\nMeasured in one run of %v on one machine, clients and servers sharing its cores. "+
		"The numbers are those of this machine, on which other work ran at the same time. "+
		"What they say is how the rows of a table compare: all its contenders are ready at once, each on servers of its own, "+
		"and take turns in %d rounds of %v.\n\n| | |\n|---|---|\n",
		f.Took.Round(time.Second), f.Times.Rounds, f.Times.Round)
	for _, m := range f.Machine {
		if !strings.Contains(m[0], "etcd") && !strings.Contains(m[0], "redislock") && !strings.Contains(m[0], "go-redis") {
			fmt.Fprintf(&b, "| %s | %s |\n", m[0], m[1])
		}
	}
	for _, v := range f.versions() {
		fmt.Fprintf(&b, "| %s | %s |\n", v[0], v[1])
	}
	b.WriteString("\nThe whole: `make bench-family`. One row, by its id: `go run ./cmd/family -only '^ID$'` in `bench/`.\n\n" +
		"Each contender asks, holds for 1 ms, releases, and asks again. Contenders are processes with connections of their own; " +
		"those of Redisson are threads of one process, each with a client of its own; whether 16 processes would be slower was not measured. " +
		"The beginning of every round does not count, nor does a first round, of 5 s, and of 30 s for Redisson, because Java compiles its code as it runs it. " +
		"Waits of those who were still waiting at the end count with what they had waited. " +
		"Commands are those that clients sent, as the servers count them, without those of the bench. " +
		"A hand-over is an acquisition by a contender since whose own last release somebody else has acquired. " +
		"The other acquisitions are by those who took again what they had just released, past others that waited. " +
		"CPU and commands are for each acquisition, where it is not said otherwise; × is beside redlatch on as many servers, round by round, and of the rounds the median. " +
		"A hold counts from the moment at which its contender has the lock to the one at which it asks to release it.\n")
	f.situation(&b, family.Slots, "16 contenders for 3 slots",
		[]string{"most holders at a moment"}, func(r family.Row) []string {
			return []string{broken(fmt.Sprint(r.Seen.Readers), r.Seen.Breaks(r.Limit()))}
		})
	f.situation(&b, family.Readers, "16 contenders, 90 % of the requests to read, 10 % to write",
		[]string{"writers' wait median", "writers' wait p99", "writers' longest wait", "most readers at a moment", "most writers at a moment", "readers beside a writer"},
		func(r family.Row) []string {
			return []string{
				short(r.WriterWaits.Median), short(r.WriterWaits.P99), short(r.WriterWaits.Max),
				fmt.Sprint(r.Seen.Readers), broken(fmt.Sprint(r.Seen.Writers), r.Seen.Writers > 1), broken(fmt.Sprint(r.Seen.Mixed), r.Seen.Mixed > 0),
			}
		})
	b.WriteString("\nredsync, bsm/redislock and rueidislock have neither slots nor readers, redis-semaphore has no readers, and Redisson has no semaphore on several servers.\n")
	f.crossings(&b)
	return b.String()
}

// beside is numbers as multiples of others, round by round, and of those the
// median: what disturbs a round disturbs both. It is a dash if there are no
// others.
func beside(a, b []float64) string {
	var times []float64
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			times = append(times, a[i]/b[i])
		}
	}
	if len(times) == 0 {
		return "–"
	}
	return digits(stats.Median(times))
}

func broken(text string, is bool) string {
	if is {
		return "**" + text + "**"
	}
	return text
}

func (f *Family) versions() [][2]string {
	var list [][2]string
	add := func(v string) {
		if v == "" {
			return
		}
		for part := range strings.SplitSeq(v, ", ") {
			name, version, _ := strings.Cut(part, " ")
			if entry := [2]string{name, version}; !slices.Contains(list, entry) {
				list = append(list, entry)
			}
		}
	}
	for _, r := range f.Rows {
		add(r.Version)
	}
	for _, c := range f.Crossings {
		add(c.Version)
	}
	return list
}

// situation writes the table of a situation; more are its own columns.
func (f *Family) situation(b *strings.Builder, which, title string, more []string, cells func(family.Row) []string) {
	var rows []family.Row
	base := map[int]family.Row{} // redlatch's, by number of servers
	for _, r := range f.Rows {
		if r.Situation == which {
			rows = append(rows, r)
			if r.Key == "redlatch" {
				base[r.Nodes] = r
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	waits := "wait"
	if which == family.Readers {
		waits = "readers' wait"
	}
	head := slices.Concat([]string{"", "servers", "hand-overs a second", "×", "acquisitions a second", "×", "of the rounds", waits + " median", waits + " p99", "longest"},
		more, []string{"Jain", "commands a hand-over", "commands", "client CPU", "server CPU", "held, median", "row"})
	fmt.Fprintf(b, "\n## %s\n\n| %s |\n|%s\n", title, strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, servers := range []int{1, 3} {
		for _, r := range rows {
			if r.Nodes != servers {
				continue
			}
			name := r.Title
			if r.Failed != "" {
				fmt.Fprintf(b, "| %s: not measured, %s |\n", name, strings.ReplaceAll(r.Failed, "\n", " "))
				continue
			}
			if r.Errors > 0 {
				name += fmt.Sprintf(" (%d calls failed)", r.Errors)
			}
			row := slices.Concat([]string{
				name, fmt.Sprint(servers), count(r.HandOver), beside(r.HandOvers, base[servers].HandOvers),
				count(r.Rate), beside(r.Rates, base[servers].Rates),
				count(slices.Min(r.Rates)) + " to " + count(slices.Max(r.Rates)),
				short(r.Waits.Median), short(r.Waits.P99), short(r.Waits.Max),
			}, cells(r), []string{
				fmt.Sprintf("%.3f", r.Jain), digits(r.PerHandOver), digits(r.Commands), short(r.ClientCPU), short(r.ServerCPU), short(r.Held.Median), "`" + r.ID() + "`",
			})
			fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	b.WriteString("\n")
	seen := map[string]bool{}
	for _, r := range rows {
		if !seen[r.Title] {
			seen[r.Title] = true
			fmt.Fprintf(b, "- **%s**: %s.\n", r.Title, r.Note)
		}
	}
	for _, r := range rows {
		if r.Errors > 0 {
			fmt.Fprintf(b, "- `%s`, the first of %d calls that failed; the contender asked again, and its wait went on: %s\n", r.ID(), r.Errors, strings.Join(strings.Fields(r.Error), " "))
		}
	}
}

func (f *Family) crossings(b *strings.Builder) {
	if len(f.Crossings) == 0 {
		return
	}
	b.WriteString("\n## Crossing requests for 2 slots on three servers\n\n" +
		"Three contenders ask at the same moment, and all three servers are healthy. Each contender has one server to which its requests take 100 ms longer, " +
		"so they arrive in this order, in every try:\n\n" +
		"| server | arrivals |\n|---|---|\n| first | 1, 2, then 3 |\n| second | 2, 3, then 1 |\n| third | 3, 1, then 2 |\n\n" +
		"A semaphore that counts its holders on each server by itself refuses the late request alone: no server has more than two holders, " +
		"and each of the three contenders has a majority of two servers. Those that got a slot hold it for 1.2 s, and none asks for longer than 0.8 s.\n\n" +
		"| | tries | most holders of 2 slots | tries with three holders | holders in each try |\n|---|---|---|---|---|\n")
	for _, c := range f.Crossings {
		if c.Failed != "" {
			fmt.Fprintf(b, "| %s: not measured, %s |\n", c.Title, c.Failed)
			continue
		}
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s |\n", c.Title, len(c.Holders), broken(fmt.Sprint(c.Most()), c.Above() > 0),
			broken(fmt.Sprint(c.Above()), c.Above() > 0), strings.Trim(fmt.Sprint(c.Holders), "[]"))
	}
}
