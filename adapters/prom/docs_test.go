//go:build linux

package redlatchprom_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch/adapters/prom"
)

// described returns the names of all metrics.
func described(t *testing.T) []string {
	t.Helper()
	c, err := redlatchprom.New(nil)
	must(t, err)
	ch := make(chan *prometheus.Desc)
	go func() {
		c.Describe(ch)
		close(ch)
	}()
	form := regexp.MustCompile(`fqName: "([a-z_]+)"`)
	var names []string
	for d := range ch {
		names = append(names, form.FindStringSubmatch(d.String())[1])
	}
	return names
}

// mentioned returns the metrics that a text mentions, those of a histogram by
// its name.
func mentioned(text string, known []string) (names []string) {
	for _, name := range regexp.MustCompile(`\bredlatch_(?:lock|node|rounds)_[a-z_]+`).FindAllString(text, -1) {
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			if h := strings.TrimSuffix(name, part); slices.Contains(known, h) {
				name = h
			}
		}
		names = append(names, name)
	}
	return names
}

// TestMetricsThatFilesMentionExist finds misspelt and renamed metrics, and those
// that the documentation and the dashboard leave out.
func TestMetricsThatFilesMentionExist(t *testing.T) {
	t.Parallel()
	known := described(t)
	for _, file := range []string{"alerts.yml", "dashboard.json", "../../docs/metrics.md"} {
		text, err := os.ReadFile(file)
		must(t, err)
		names := mentioned(string(text), known)
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("%s mentions %s, which does not exist", file, name)
			}
		}
		for _, name := range known {
			if file != "alerts.yml" && !slices.Contains(names, name) {
				t.Errorf("%s does not mention %s", file, name)
			}
		}
	}
	doc, err := os.ReadFile("../../docs/metrics.md")
	must(t, err)
	for _, name := range alertNames(t) {
		if !strings.Contains(string(doc), "\n### "+name+"\n") {
			t.Errorf("docs/metrics.md has no heading for the alert %s", name)
		}
	}
}
