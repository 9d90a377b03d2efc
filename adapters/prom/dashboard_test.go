//go:build linux

package redlatchprom_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// dashboard is as much of Grafana's format as ours uses. A field that is not
// here is an error: it would be a misspelling, or something not yet checked.
type dashboard struct {
	Annotations, Timepicker, ID                       any
	Description, Refresh, Timezone, Title             string
	UID, WeekStart                                    string
	Editable, LiveNow                                 bool
	FiscalYearStartMonth, GraphTooltip, SchemaVersion int
	Version                                           int
	Links                                             []any
	Tags                                              []string
	Panels                                            []panel
	Templating                                        struct{ List []variable }
	Time                                              struct{ From, To string }
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Collapsed                bool
	Panels                   []panel
	GridPos                  struct{ X, Y, W, H int }
	Datasource               *source
	Targets                  []target
	FieldConfig              struct {
		Defaults struct {
			Unit                                string
			Min, Max                            *float64
			Color, Mappings, Thresholds, Custom any
		}
		Overrides []any
	}
	Options map[string]any
}

type source struct{ Type, UID string }

type target struct {
	Datasource                            *source
	EditorMode, Expr, LegendFormat, RefID string
	Range                                 bool
}

type variable struct {
	Name, Label, Type, Definition, AllValue, Regex string
	Current, Query                                 any
	Datasource                                     *source
	Hide, Refresh, Sort                            int
	IncludeAll, Multi, SkipURLSync                 bool
	Options                                        []any
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	must(t, err)
	var d dashboard
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&d))
	return d
}

func TestDashboardIsOneThatGrafanaImports(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	if d.ID != nil || d.UID == "" || d.Title == "" || d.SchemaVersion < 36 {
		t.Errorf("id %v, uid %q, title %q, schemaVersion %d", d.ID, d.UID, d.Title, d.SchemaVersion)
	}
	ours := source{"prometheus", "${datasource}"}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
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
		if p.Type == "row" {
			continue
		}
		if !slices.Contains([]string{"stat", "timeseries"}, p.Type) || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q is a %q with %d targets, and something is missing", p.Title, p.Type, len(p.Targets))
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.Datasource == nil || *q.Datasource != ours || *p.Datasource != ours || refs[q.RefID] || q.RefID == "" || q.LegendFormat == "" {
				t.Errorf("a target of %q: %+v", p.Title, q)
			}
			refs[q.RefID] = true
		}
	}
	if v := d.Templating.List; len(v) != 3 || v[0].Name != "datasource" || v[0].Type != "datasource" || v[0].Query != "prometheus" {
		t.Errorf("the variables are %+v", v)
	}
}

// inGrafana replaces the variables of a query as Grafana does.
var inGrafana = strings.NewReplacer("$__rate_interval", "20s", "$job", ".+", "$name", ".+")

// dashboardHasData has every query of the dashboard return data of a program on
// servers without faults, and no alert fire for it.
func dashboardHasData(t *testing.T, p *server) {
	prog := begin(t, p, servertest.Redis(t, 3))
	d := readDashboard(t)
	queries := 0
	for _, panel := range d.Panels {
		for _, q := range panel.Targets {
			queries++
			expr := inGrafana.Replace(q.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%q: a variable in %s is unknown", panel.Title, expr)
				continue
			}
			// Of this program alone, which has no faults.
			mine := regexp.MustCompile(`job=~"\.\+"`).ReplaceAllString(expr, fmt.Sprintf("instance=%q", prog.instance))
			if mine == expr {
				t.Errorf("%q: %s does not select by job", panel.Title, expr)
			}
			poll.Within(t, poll.Patience, func() error { return p.hasData(mine) })
		}
	}
	if queries < 20 {
		t.Errorf("the dashboard has %d queries: this looked in the wrong place", queries)
	}
	for _, v := range d.Templating.List[1:] {
		checkVariable(t, p, v)
	}
	awaitAlerts(t, p, prog.instance)
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// checkVariable checks that a variable has values.
func checkVariable(t *testing.T, p *server, v variable) {
	t.Helper()
	m := labelValues.FindStringSubmatch(v.Definition)
	if m == nil || v.Query.(map[string]any)["query"] != v.Definition || v.Name != m[2] {
		t.Errorf("variable %q is %q, %v", v.Name, v.Definition, v.Query)
		return
	}
	var values []string
	must(t, p.get("/api/v1/label/"+m[2]+"/values", url.Values{"match[]": {inGrafana.Replace(m[1])}}, &values))
	if len(values) == 0 {
		t.Errorf("variable %q has no values", v.Name)
	}
}
