//go:build unix

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/certs"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// servedPage is a page that redlatch ui serves.
type servedPage struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	stderr *bytes.Buffer
	client *http.Client
}

// servePage starts redlatch ui, and returns when it listens.
func servePage(t *testing.T, args ...string) *servedPage {
	t.Helper()
	p := &servedPage{t: t, stderr: &bytes.Buffer{}}
	p.cmd = exec.Command("redlatch", append([]string{"ui", "--json"}, args...)...)
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	t.Cleanup(func() { p.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var event struct{ Event, URL string }
	if err != nil || json.Unmarshal(line, &event) != nil || event.Event != "listening" {
		p.cmd.Wait()
		t.Fatalf("it wrote %q, %v: %s", line, err, p.stderr)
	}
	p.url = event.URL
	p.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return p
}

// get asks for a page, and returns status and body.
func (p *servedPage) get(path string, change ...func(*http.Request)) (int, string) {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.url+path, nil)
	must(p.t, err)
	for _, c := range change {
		c(req)
	}
	resp, err := p.client.Do(req)
	must(p.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(p.t, err)
	return resp.StatusCode, string(body)
}

// TestUIServesThePageUntilASignal, and shows no password of the servers: not in the
// command that breaks a lock, and nowhere else.
func TestUIServesThePageUntilASignal(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1, "--requirepass", "sesame")[0]
	address := strings.Replace(server.URL(), "redis://", "redis://:sesame@", 1)
	handleOf(t, address, "it's", "--ttl", "25s")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := servePage(t, "--listen", "127.0.0.1:0", "--nodes", address)
		status, list := p.get("")
		if status != 200 || !strings.Contains(list, "it&#39;s") || !strings.Contains(list, "<b>1 of 1</b> nodes in service") {
			t.Errorf("the page is %d: %s", status, list)
		}
		_, lock := p.get("lock?name=it%27s")
		if command := `redlatch break --nodes ` + server.URL() + ` &#39;it&#39;\&#39;&#39;s&#39;`; !strings.Contains(lock, ">"+command+"<") {
			t.Errorf("the page of the lock has no %s: %s", command, lock)
		}
		if strings.Contains(list+lock, "sesame") {
			t.Error("the password is shown")
		}
		for host, want := range map[string]int{"localhost:1": 200, "127.0.0.1": 200, "[::1]": 200, "evil.example": 421} {
			if status, _ := p.get("", func(r *http.Request) { r.Host = host }); status != want {
				t.Errorf("under %s: %d", host, status)
			}
		}
		watching, err := p.client.Get(p.url + "events") // somebody watches
		if err != nil || watching.StatusCode != 200 {
			t.Fatal(watching, err)
		}
		p.cmd.Process.Signal(s)
		if _, err := io.Copy(io.Discard, watching.Body); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
		if code := exitCode(t, p.cmd.Wait()); code != 0 {
			t.Errorf("after %v: exit %d, %s", s, code, p.stderr)
		}
	}
}

func TestUIOffLoopbackNeedsAPasswordAndTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	password, short := write("password", "correct horse\n"), write("short", "hunter2\n")
	cert, key := certs.SelfSigned(t, "locks")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, exitUsage, []string{`--listen is "0.0.0.0:0"`, "not loopback", "--page-password-file"}},
		{[]string{"--listen", ":0"}, exitUsage, []string{`--listen is ":0"`, "not loopback", "--page-password-file"}},
		{[]string{"--listen", "[::]:0", "--tls-cert", cert, "--tls-key", key}, exitUsage, []string{"not loopback", "--page-password-file"}},
		{[]string{"--listen", "0.0.0.0:0", "--behind-proxy"}, exitUsage, []string{"--page-password-file"}},
		{[]string{"--listen", "0.0.0.0:0", "--page-password-file", password}, exitUsage, []string{`"0.0.0.0:0"`, "--tls-cert", "--behind-proxy"}},
		{[]string{"--listen", "8089"}, exitUsage, []string{`--listen is "8089"`, "HOST:PORT"}},
		{[]string{"--listen", "127.0.0.1:http-or-so"}, exitUsage, []string{"--listen is", "HOST:PORT"}},
		{[]string{"--page-password-file", short}, exitUsage, []string{"--page-password-file", "12 characters or more; it has 7"}},
		{[]string{"--page-password-file", filepath.Join(dir, "none")}, exitUsage, []string{"--page-password-file cannot be read"}},
		{[]string{"--tls-cert", cert}, exitUsage, []string{"--tls-key"}},
		{[]string{"--tls-cert", cert, "--tls-key", key, "--behind-proxy"}, exitUsage, []string{"cannot be combined"}},
		{[]string{"--tls-cert", key, "--tls-key", cert}, exitUsage, []string{"cannot be used", "PEM"}},
		{[]string{"--interval", "1ms"}, exitUsage, []string{"--interval is 1ms", "between 100ms"}},
		{[]string{"--host", "a:1"}, exitUsage, []string{`--host is "a:1"`}},
		{[]string{"now"}, exitUsage, []string{"no argument"}},
		{[]string{"--listen", taken.Addr().String()}, exitNoQuorum, []string{"address already in use", "--listen"}},
	} {
		code, stdout, stderr := command(t, append([]string{"ui", "--nodes", "local"}, c.args...)...)
		if code != c.code || stdout != "" || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "hunter2") {
			t.Errorf("%q: exit %d, %s%s", c.args, code, stdout, stderr)
		}
		for _, want := range c.says {
			if !strings.Contains(stderr, want) {
				t.Errorf("%q says %q, without %q", c.args, stderr, want)
			}
		}
	}

	p := servePage(t, "--nodes", "local", "--listen", "0.0.0.0:0", "--page-password-file", password, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(p.url, "https://") {
		t.Errorf("it listens on %s", p.url)
	}
	as := func(password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth("anybody", password) }
	}
	for _, path := range []string{"", "lock?name=a", "events", "page.js"} {
		if status, body := p.get(path); status != http.StatusUnauthorized || strings.Contains(body, "<") {
			t.Errorf("%s without a password: %d, %s", path, status, body)
		}
	}
	if status, body := p.get("", as("correct horse")); status != 200 || !strings.Contains(body, "No locks.") {
		t.Errorf("with the password: %d, %s", status, body)
	}
	if status, _ := p.get("", as("wrong")); status != http.StatusUnauthorized {
		t.Errorf("with a wrong password: %d", status)
	}
}
