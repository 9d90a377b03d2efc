//go:build unix

package demo

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) {
	if code, is := Child(os.Args[1:]); is {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// write is a PUT that reached the account, or its fence.
type write struct {
	token, balance int
	status         int
}

// ledger records every write, apart from what the demo says of it.
type ledger struct {
	mu     sync.Mutex
	writes []write
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (l *ledger) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		token, _ := strconv.Atoi(r.Header.Get(fence.TokenHeader))
		seen := &statusWriter{w, http.StatusOK}
		next.ServeHTTP(seen, r)
		if r.Method != http.MethodPut {
			return
		}
		balance, _ := strconv.Atoi(string(body))
		l.mu.Lock()
		defer l.mu.Unlock()
		l.writes = append(l.writes, write{token, balance, seen.status})
	})
}

var pidInLine = regexp.MustCompile(`^process (\d+) is (stopped|killed)`)

// show runs the demo and returns its lines. When a line says that a process is
// stopped or killed, it must be.
func show(t *testing.T, opts Options) (lines []Line, pids []int, err error) {
	t.Helper()
	opts.Print = func(l Line) error {
		t.Log(l.Who, l.Tone, l.Text)
		lines = append(lines, l)
		if m := pidInLine.FindStringSubmatch(l.Text); m != nil {
			pid, _ := strconv.Atoi(m[1])
			pids = append(pids, pid)
			if m[2] == "killed" && processes.Alive(pid) {
				t.Errorf("%q, and it is alive", l.Text)
			}
			if m[2] == "stopped" && runtime.GOOS == "linux" && !poll.Holds(poll.Patience, func() bool { return isStopped(pid) }) {
				t.Errorf("%q, and it runs", l.Text)
			}
		}
		return nil
	}
	err = Run(context.Background(), opts)
	return lines, pids, err
}

func isStopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "T")
}

// said returns the texts of the lines of one tone.
func said(lines []Line, tone Tone) (texts []string) {
	for _, l := range lines {
		if l.Tone == tone {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

// has reports an error unless one of the lines is this.
func has(t *testing.T, lines []Line, want Line) {
	t.Helper()
	if !slices.Contains(lines, want) {
		t.Errorf("no line is %q", want)
	}
}

// checkSums compares what the account saw with what the demo said of it: an
// accepted write is a sum, with its token.
func checkSums(t *testing.T, lines []Line, writes []write) {
	t.Helper()
	var want []string
	was := 0
	for _, w := range writes {
		if w.status == http.StatusOK {
			want = append(want, fmt.Sprintf("token %d  %d + %d = %d", w.token, was, w.balance-was, w.balance))
			was = w.balance
		}
	}
	var sums []string
	for _, l := range lines {
		if strings.Contains(l.Text, " = ") {
			text, _, _ := strings.Cut(l.Text, ", with")
			sums = append(sums, text)
		}
	}
	if !slices.Equal(sums, want) {
		t.Errorf("the demo said\n%q, the account saw\n%q", sums, want)
	}
}

func TestLinesAreWhatTheAccountSaw(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	lines, pids, err := show(t, Options{observe: l.observe})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.writes) != 9 || len(pids) != 4 {
		t.Fatalf("writes %+v; processes %v", l.writes, pids)
	}
	b, a := l.writes[6], l.writes[7]
	if a.status != http.StatusConflict || b.status != http.StatusOK || a.token >= b.token || b.balance != 65 || a.balance != 70 {
		t.Errorf("B wrote %+v, then A %+v", b, a)
	}
	for i, w := range l.writes[:7] {
		if i > 0 && w.token <= l.writes[i-1].token {
			t.Errorf("write %d has token %d, after %d", i, w.token, l.writes[i-1].token)
		}
	}
	checkSums(t, lines, l.writes)
	has(t, lines, Line{"account", Good, "balance 60 after 6 additions: 0 lost"})
	has(t, lines, Line{"A", Plain, fmt.Sprintf("token %d  has the lock, read 60, is about to write 70", a.token)})
	has(t, lines, Line{"account", Good, fmt.Sprintf("refuses A: token %d is older than %d", a.token, b.token)})
	has(t, lines, Line{"account", Good, "balance 65: what B wrote is still there"})
	if bad := said(lines, Bad); bad != nil {
		t.Errorf("the demo said %q", bad)
	}
	if good := said(lines, Good); len(good) != 6 {
		t.Errorf("promises kept: %q", good)
	}
	isInPicture(t, lines)
}

// isInPicture checks that the picture of the documentation is of this demo: its
// lines are these, except for numbers.
func isInPicture(t *testing.T, lines []Line) {
	t.Helper()
	picture, err := os.ReadFile("../../../../docs/img/demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`[0-9]+`)
	has := number.ReplaceAllString(html.UnescapeString(string(picture)), "0")
	for _, l := range lines {
		if text := number.ReplaceAllString(l.Text, "0"); !strings.Contains(has, ">"+text+"<") {
			t.Errorf("the picture has no line %q: make demo-svg", text)
		}
	}
}

func TestWithoutTheFenceTheStaleWriteIsShown(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	lines, _, err := show(t, Options{NoFence: true, observe: l.observe})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.writes) != 9 {
		t.Fatalf("writes %+v", l.writes)
	}
	b, a := l.writes[6], l.writes[7]
	if a.status != http.StatusOK || a.token >= b.token {
		t.Errorf("B wrote %+v, then A %+v", b, a)
	}
	has(t, lines, Line{"account", Bad, fmt.Sprintf("accepts A, whose token %d is older than %d", a.token, b.token)})
	has(t, lines, Line{"account", Bad, "balance 70: the 5 that B added are lost"})
	if bad := said(lines, Bad); len(bad) != 2 {
		t.Errorf("the demo said %q", bad)
	}
}

func TestNoProcessIsLeftAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	interrupt := errors.New("interrupted")
	var pid int
	err := Run(ctx, Options{Print: func(l Line) error {
		if m := pidInLine.FindStringSubmatch(l.Text); m != nil {
			pid, _ = strconv.Atoi(m[1])
			cancel(interrupt) // while A is stopped
		}
		return nil
	}, Pace: 10 * time.Millisecond})
	if !errors.Is(err, interrupt) || pid == 0 || processes.Alive(pid) {
		t.Errorf("ended with %v; process %d is alive: %t", err, pid, processes.Alive(pid))
	}
}
