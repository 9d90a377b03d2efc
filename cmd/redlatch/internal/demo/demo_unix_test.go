//go:build unix

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
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
	"github.com/redlatch/redlatch/internal/test/check"
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

func (l *ledger) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		seen := httptest.NewRecorder()
		next.ServeHTTP(seen, r)
		if r.Method == http.MethodPut {
			token, _ := strconv.Atoi(r.Header.Get(fence.TokenHeader))
			balance, _ := strconv.Atoi(string(body))
			l.mu.Lock()
			defer l.mu.Unlock()
			l.writes = append(l.writes, write{token, balance, seen.Code})
		}
		maps.Copy(w.Header(), seen.Header())
		w.WriteHeader(seen.Code)
		w.Write(seen.Body.Bytes())
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
			want = append(want, fmt.Sprintf("token %020d  %d + %d = %d", w.token, was, w.balance-was, w.balance))
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

// TestLinesAreWhatTheAccountSaw runs the demo with the fence, and without it: then
// the stale write is shown.
func TestLinesAreWhatTheAccountSaw(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		noFence           bool
		status, good, bad int
	}{"with the fence": {false, http.StatusConflict, 6, 0}, "without it": {true, http.StatusOK, 4, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &ledger{}
			lines, pids, err := show(t, Options{NoFence: c.noFence, observe: l.observe})
			if err != nil || len(l.writes) != 9 || len(pids) != 4 {
				t.Fatalf("%v; writes %+v; processes %v", err, l.writes, pids)
			}
			b, a := l.writes[6], l.writes[7]
			if a.status != c.status || b.status != http.StatusOK || a.token >= b.token || b.balance != 65 || a.balance != 70 {
				t.Errorf("B wrote %+v, then A %+v", b, a)
			}
			for i, w := range l.writes[:7] {
				if i > 0 && w.token <= l.writes[i-1].token {
					t.Errorf("write %d has token %d, after %d", i, w.token, l.writes[i-1].token)
				}
			}
			has(t, lines, Line{"account", Good, "balance 60 after 6 additions: 0 lost"})
			has(t, lines, Line{"A", Plain, fmt.Sprintf("token %020d  has the lock, read 60, is about to write 70", a.token)})
			if c.noFence {
				has(t, lines, Line{"account", Bad, fmt.Sprintf("accepts A, whose token %020d is older than %020d", a.token, b.token)})
				has(t, lines, Line{"account", Bad, "balance 70: the 5 that B added are lost"})
			} else {
				has(t, lines, Line{"account", Good, fmt.Sprintf("refuses A: token %020d is older than %020d", a.token, b.token)})
				has(t, lines, Line{"account", Good, "balance 65: what B wrote is still there"})
				checkSums(t, lines, l.writes)
				isInPicture(t, lines)
			}
			tones := map[Tone]int{}
			for _, l := range lines {
				tones[l.Tone]++
			}
			if tones[Good] != c.good || tones[Bad] != c.bad {
				t.Errorf("the tones of the lines are %v", tones)
			}
		})
	}
}

// isInPicture checks that the picture of the documentation is of this demo: its
// lines are these, except for numbers.
func isInPicture(t *testing.T, lines []Line) {
	t.Helper()
	picture, err := os.ReadFile("../../../../docs/img/demo.svg")
	check.Must(t, err)
	number := regexp.MustCompile(`[0-9]+`)
	plain := strings.NewReplacer("<tspan>", "", "</tspan>", "").Replace(string(picture)) // the dim digits of tokens
	has := number.ReplaceAllString(html.UnescapeString(plain), "0")
	for _, l := range lines {
		if text := number.ReplaceAllString(l.Text, "0"); !strings.Contains(has, ">"+text+"<") {
			t.Errorf("the picture has no line %q: make demo-svg", text)
		}
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
