//go:build linux

package redlatchprom_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch/adapters/prom"
	"github.com/redlatch/redlatch/internal/test/poll"
)

// described returns the names of all metrics.
func described(t *testing.T) (names []string) {
	t.Helper()
	c, _ := newCollector(t, redlatchprom.Options{})
	ch := make(chan *prometheus.Desc)
	go func() {
		c.Describe(ch)
		close(ch)
	}()
	form := regexp.MustCompile(`fqName: "([a-z_]+)"`)
	for d := range ch {
		names = append(names, form.FindStringSubmatch(d.String())[1])
	}
	return names
}

// TestMetricsThatFilesMentionExist finds misspelt and renamed metrics, and those
// that the documentation and the dashboard leave out.
func TestMetricsThatFilesMentionExist(t *testing.T) {
	t.Parallel()
	known := described(t)
	for _, file := range []string{"alerts.yml", "dashboard.json", "../../docs/metrics.md"} {
		var names []string
		for _, name := range regexp.MustCompile(`\bredlatch_(?:lock|node|rounds)_[a-z_]+`).FindAllString(read(t, file), -1) {
			for _, part := range []string{"_bucket", "_sum", "_count"} { // of a histogram
				if h := strings.TrimSuffix(name, part); slices.Contains(known, h) {
					name = h
				}
			}
			names = append(names, name)
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
}

// dashboard is what the tests read of Grafana's format.
type dashboard struct {
	ID            any
	UID, Title    string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		Datasource                struct{ Type, UID string }
		Expr, LegendFormat, RefID string
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	must(t, json.Unmarshal([]byte(read(t, "dashboard.json")), &d))
	return d
}

func TestDashboardIsOneThatGrafanaImports(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	if v := d.Templating.List; d.ID != nil || d.UID == "" || d.Title == "" || d.SchemaVersion < 36 || v[0].Name != "datasource" || v[0].Type != "datasource" {
		t.Errorf("id %v, uid %q, title %q, schemaVersion %d, variables %+v", d.ID, d.UID, d.Title, d.SchemaVersion, v)
	}
	ids, taken := map[int]bool{0: true}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d, %q: the id is there twice, or something is missing", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] >= 24 {
					t.Errorf("%q is at %v, where %q is, or outside", p.Title, at, taken[at])
				}
				taken[at] = p.Title
			}
		}
		if p.Type != "row" && (p.Type != "stat" && p.Type != "timeseries" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0) {
			t.Errorf("panel %q is a %q with %d targets, and something is missing", p.Title, p.Type, len(p.Targets))
		}
		refs := map[string]bool{"": true}
		for _, q := range p.Targets {
			if q.Datasource.Type != "prometheus" || q.Datasource.UID != "${datasource}" || refs[q.RefID] || q.LegendFormat == "" {
				t.Errorf("a target of %q: %+v", p.Title, q)
			}
			refs[q.RefID] = true
		}
	}
}

// inGrafana replaces the variables of a query as Grafana does.
var inGrafana = strings.NewReplacer("$__rate_interval", "20s", "$job", ".+", "$name", ".+")

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// dashboardHasData has every query and every variable of the dashboard return
// data of a program on servers without faults.
func dashboardHasData(t *testing.T, s *server, instance string) {
	d := readDashboard(t)
	queries := 0
	for _, panel := range d.Panels {
		for _, q := range panel.Targets {
			queries++
			expr := inGrafana.Replace(q.Expr)
			mine := strings.ReplaceAll(expr, `job=~".+"`, fmt.Sprintf("instance=%q", instance)) // of this program alone
			if mine == expr || strings.Contains(expr, "$") {
				t.Errorf("%q: %s does not select by job, or has an unknown variable", panel.Title, expr)
				continue
			}
			poll.Within(t, poll.Patience, func() error { return s.hasData(mine) })
		}
	}
	if queries < 20 {
		t.Errorf("the dashboard has %d queries: this looked in the wrong place", queries)
	}
	for _, v := range d.Templating.List[1:] {
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil || v.Name != m[2] {
			t.Fatalf("variable %q is %q", v.Name, v.Definition)
		}
		var values []string
		must(t, s.get("/api/v1/label/"+m[2]+"/values", url.Values{"match[]": {inGrafana.Replace(m[1])}}, &values))
		if len(values) == 0 {
			t.Errorf("variable %q has no values", v.Name)
		}
	}
}
