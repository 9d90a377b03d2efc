//go:build linux

package redlatchprom_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/childproc"
	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/poll"
)

// server is a Prometheus server.
type server struct {
	url     string
	targets string // the folder where it looks for programs to scrape
}

// configuration is that of a server with our rules, which looks every half second.
const configuration = `
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [rules.yml]
scrape_configs:
  - job_name: redlatch
    file_sd_configs: [{files: ['targets/*.json'], refresh_interval: 1s}]
`

// startPrometheus starts a server with the given rules on a free port. It is
// killed when the test ends.
func startPrometheus(t *testing.T, rules string) *server {
	t.Helper()
	path, dir := need(t, "prometheus"), t.TempDir()
	s := &server{targets: filepath.Join(dir, "targets")}
	must(t, os.Mkdir(s.targets, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(configuration), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(rules), 0o644))
	port := 0
	must(t, redisproc.OnFreePort(&port, func() error {
		address := fmt.Sprint("127.0.0.1:", port)
		s.url = "http://" + address
		cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
			"--web.listen-address="+address, "--log.level=warn")
		return s.run(t, cmd)
	}))
	return s
}

// run starts the process, and waits until it is ready.
func (s *server) run(t *testing.T, cmd *exec.Cmd) error {
	t.Helper()
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = childproc.Apart()
	wait, err := childproc.Start(cmd)
	must(t, err)
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-done
		if t.Failed() {
			t.Logf("Prometheus printed:\n%s", log.String())
		}
	})
	ready := false
	poll.Holds(poll.Patience, func() bool {
		if resp, err := http.Get(s.url + "/-/ready"); err == nil {
			resp.Body.Close()
			ready = resp.StatusCode == http.StatusOK
		}
		select {
		case <-done:
			return true
		default:
			return ready
		}
	})
	if !ready {
		return fmt.Errorf("Prometheus does not start: %w", redisproc.ErrPortTaken)
	}
	return nil
}

// scrape has the server scrape a program from now on, and waits until it has
// done so some times.
func (s *server) scrape(t *testing.T, instance string) {
	t.Helper()
	name := filepath.Join(s.targets, strings.ReplaceAll(instance, ":", "-"))
	must(t, os.WriteFile(name+".new", fmt.Appendf(nil, `[{"targets": [%q]}]`, instance), 0o644))
	must(t, os.Rename(name+".new", name+".json"))
	poll.Within(t, poll.Patience, func() error {
		samples, err := s.query(fmt.Sprintf(`count_over_time(redlatch_lock_held{instance=%q,name="busy"}[5m])`, instance))
		if err == nil && (len(samples) != 1 || samples[0].value < 6) {
			err = fmt.Errorf("scraped so far: %v", samples)
		}
		return err
	})
}

// get calls the server's API, and decodes the data of its answer.
func (s *server) get(path string, params url.Values, data any) error {
	resp, err := http.Get(s.url + path + "?" + params.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return fmt.Errorf("%s %v: %s %s", path, params, resp.Status, body)
	}
	return json.Unmarshal(answer.Data, data)
}

// sample is an element of a query's result.
type sample struct {
	labels map[string]string
	value  float64
}

// query returns the result of a query now.
func (s *server) query(expr string) ([]sample, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := s.get("/api/v1/query", url.Values{"query": {expr}}, &data); err != nil {
		return nil, err
	}
	var all []sample
	for _, r := range data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, err
		}
		all = append(all, sample{r.Metric, value})
	}
	return all, nil
}

// hasData returns an error if a query has no result that is a number.
func (s *server) hasData(expr string) error {
	samples, err := s.query(expr)
	if err == nil && !slices.ContainsFunc(samples, func(s sample) bool { return !math.IsNaN(s.value) }) {
		err = fmt.Errorf("%s has no data: %v", expr, samples)
	}
	return err
}

// wantFired waits until these alerts have fired for a program. No other one
// may.
func (s *server) wantFired(t *testing.T, instance string, want []string) {
	t.Helper()
	expr := fmt.Sprintf(`max by (alertname) (max_over_time(ALERTS{alertstate="firing",instance=%q}[1h]))`, instance)
	poll.Within(t, poll.Patience, func() error {
		samples, err := s.query(expr)
		for _, sample := range samples {
			if name := sample.labels["alertname"]; !slices.Contains(want, name) {
				t.Fatalf("%s fired, and only %q should", name, want)
			}
		}
		if err == nil && len(samples) < len(want) {
			err = fmt.Errorf("%v fired, want %q", samples, want)
		}
		return err
	})
}
