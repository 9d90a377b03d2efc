package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/textfile"
)

// metricPrefix begins the name of every metric.
const metricPrefix = "redlatch_run_"

// lostCauses are why a lock was lost, as metrics and logs name it.
var lostCauses = []string{causeTaken, causeNotExtended, causeStalled, causeMaxHold}

// outcomes are how a run ended, as metrics name it, in the order of the file.
var outcomes = []string{"ran", "held", "completed", "no_quorum", "quarantine", "lost", "unmarked", "cannot_run", "interrupted", "refused"}

// gauges are the metrics in the order of the file. over names the label that a
// metric has besides the name of the lock; it is empty for none.
var gauges = []struct{ name, over, help string }{
	{"running", "", "Whether CMD runs now. A redlatch that was killed leaves a 1."},
	{"waiting", "", "Whether the run waits for the lock now."},
	{"start_timestamp_seconds", "", "When the last run asked for the lock."},
	{"wait_seconds", "", "How long the last run waited for the lock."},
	{"end_timestamp_seconds", "", "When the last run that has ended did."},
	{"hold_seconds", "", "How long the last run that has ended held the lock, 0 if it did not get it."},
	{"exit_code", "", "The exit status of the last run that has ended; 128 and the number of the signal that ended it."},
	{"last_success_timestamp_seconds", "", "When CMD last exited with 0 here."},
	{"outcome", "outcome", "How the last run that has ended did: 1 for one outcome, 0 for the others."},
	{"lost", "cause", "Whether the last run that has ended lost the lock: 1 for the cause, 0 for the others."},
	{"node_up", "node", "Whether a node answered when the last run ended."},
	{"node_quarantined", "node", "Whether a node was quarantined when the last run ended, as far as the run noticed."},
}

// runMetrics is the file of metrics of a run. Its methods do nothing if it is
// nil.
type runMetrics struct {
	path  string
	names []string
	nodes []string          // once they are open
	known map[string]string // the values, by series
	began time.Time
	wait  time.Duration // for the lock; set once it is over
	fatal bool          // a file that cannot be written is an error: no CMD has been started
}

// openMetrics reads the former file, whose values are kept until this run has
// others. It returns nil without --metrics.
func (f *runFlags) openMetrics(names []string) (*runMetrics, *outcome) {
	if f.metrics == "" {
		return nil, nil
	}
	known, err := textfile.Read(f.metrics, metricPrefix)
	if err != nil {
		return nil, f.unwritable(err)
	}
	return &runMetrics{path: f.metrics, names: distinct(names), known: known, began: time.Now(), fatal: true}, nil
}

// distinct are the texts, each once: a file with a series twice is an error.
func distinct(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}

// unwritable is the outcome of a file of metrics that cannot be written.
func (f *runFlags) unwritable(err error) *outcome {
	return &outcome{code: exitCannotCreate, event: "metrics", err: fmt.Errorf("--metrics %s cannot be written, and CMD was not run: %w", f.metrics, err),
		hint: "its folder must exist and be ours to write to, and the file must be of a former run"}
}

// begin notes that the run asks for the lock.
func (m *runMetrics) begin(nodes []redlatch.Node) error {
	if m == nil {
		return nil
	}
	m.began, m.wait, m.nodes = time.Now(), -1, distinct(nodeNames(nodes))
	m.set("start_timestamp_seconds", timestamp(m.began))
	m.phase(true, false)
	return m.write()
}

// acquired notes that the wait is over, and CMD is about to run.
func (m *runMetrics) acquired(waited time.Duration) error {
	if m == nil {
		return nil
	}
	m.wait = waited
	m.set("wait_seconds", inSeconds(waited))
	m.phase(false, true)
	err := m.write()
	m.fatal = m.fatal && err != nil
	return err
}

// end notes how the run ended.
func (m *runMetrics) end(o *outcome) error {
	now, held := time.Now(), time.Duration(0)
	if o.run != nil {
		held = o.run.held
	}
	if m.wait < 0 {
		m.wait = now.Sub(m.began)
	}
	m.set("start_timestamp_seconds", timestamp(m.began))
	m.set("wait_seconds", inSeconds(m.wait))
	m.phase(false, false)
	m.set("end_timestamp_seconds", timestamp(now))
	m.set("hold_seconds", inSeconds(held))
	m.set("exit_code", strconv.Itoa(o.code))
	if o.event == "exited" && o.code == 0 {
		m.set("last_success_timestamp_seconds", timestamp(now))
	}
	for _, word := range outcomes {
		m.set("outcome", bit(word == outcomeName(o)), "outcome", word)
	}
	for _, cause := range lostCauses {
		m.set("lost", bit(cause == o.cause), "cause", cause)
	}
	return m.write()
}

// phase notes what the run does now.
func (m *runMetrics) phase(waiting, running bool) {
	m.set("waiting", bit(waiting))
	m.set("running", bit(running))
}

// outcomeName is an outcome as metrics name it.
func outcomeName(o *outcome) string {
	switch {
	case o.event == "exited":
		return "ran"
	case o.event == "not_found":
		return "cannot_run"
	case slices.Contains(outcomes, o.event):
		return o.event
	}
	return "refused" // the command line, the membership, a lock within itself
}

// set notes a value of all names.
func (m *runMetrics) set(metric, value string, labels ...string) {
	for _, name := range m.names {
		m.known[m.series(metric, name, labels...)] = value
	}
}

func (m *runMetrics) series(metric, name string, labels ...string) string {
	return textfile.Series(metricPrefix+metric, append([]string{"name", name}, labels...)...)
}

// write replaces the file. It has the series of this run's names and nodes
// alone: the former file may have had others.
func (m *runMetrics) write() error {
	var page strings.Builder
	values := map[string][]string{"outcome": outcomes, "cause": lostCauses, "node": m.nodes}
	for _, g := range gauges {
		begun := false
		add := func(name string, labels ...string) {
			series := m.series(g.name, name, labels...)
			value, ok := m.known[series]
			if !ok {
				return
			}
			if !begun {
				page.WriteString(textfile.Gauge(metricPrefix+g.name, g.help))
				begun = true
			}
			page.WriteString(series + " " + value + "\n")
		}
		for _, name := range m.names {
			if g.over == "" {
				add(name)
			}
			for _, value := range values[g.over] {
				add(name, g.over, value)
			}
		}
	}
	return textfile.Write(m.path, page.String())
}

// noteNodes asks every node whether it is there, and notes which are not, and
// which are quarantined.
func (m *runMetrics) noteNodes(t *task) {
	if t.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitRefresh)
	defer cancel()
	answers := inspect(ctx, t.nodes, t.names[0])
	out := map[string]bool{}
	for _, n := range admin.New(t.client).Quarantined() {
		out[n.Node] = true
	}
	for i, node := range nodeNames(t.nodes) {
		m.set("node_up", bit(answers[i].Err == nil), "node", node)
		m.set("node_quarantined", bit(out[node]), "node", node)
	}
}

// unwritable is the outcome of metrics that cannot be written before CMD runs;
// nil for no error. From the second term of a leader on it is nil, and there is a
// warning.
func (t *task) unwritable(err error) *outcome {
	switch {
	case err == nil:
		return nil
	case t.metrics.fatal:
		return t.f.unwritable(err)
	}
	t.say.warn(t.name(), "%v", t.f.unwritable(err).err)
	return nil
}

// record writes into the file of metrics how the run ended. CMD has run, or could
// not: what it did counts more than a file.
func (t *task) record(end *outcome) {
	if t.metrics == nil || end.event == "metrics" {
		return
	}
	t.metrics.noteNodes(t)
	if err := t.metrics.end(end); err != nil {
		t.say.warn(t.name(), "--metrics %s could not be written at the end, and is out of date: %w", t.f.metrics, err)
	}
}

// timestamp is a time as metrics have it, to the millisecond.
func timestamp(at time.Time) string {
	return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)
}

func inSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

func bit(is bool) string {
	if is {
		return "1"
	}
	return "0"
}
