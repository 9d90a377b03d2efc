package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
)

// common is what the calls of these tests have in common.
var common = &redis.Batch{Keys: []string{"marker"}, Args: []string{"1", "2", "3", "4", "5", "6"}}

// item is a call that can be in a batch: item of name and value.
func item(text string) redis.Call {
	parts := strings.Fields(text)
	return redis.Call{Script: redis.NewScript("test", "return ARGV[1]"), Keys: parts[1:2], Args: parts[2:], Batch: common, Item: parts[0]}
}

// outcome is the answer to a call.
type outcome struct {
	reply string
	err   error
}

// recorder is a server that notes what it is sent, without digests and sources.
type recorder struct {
	*server
	mu   sync.Mutex
	sent []string
}

func newRecorder(t *testing.T, answer func(command []string) string) *recorder {
	t.Helper()
	r := &recorder{}
	r.server = newServer(t, func(command []string) string {
		r.mu.Lock()
		r.sent = append(r.sent, command[0]+" "+strings.Join(command[2:], " "))
		r.mu.Unlock()
		return answer(command)
	})
	return r
}

// wants compares what the server was sent since the last time.
func (r *recorder) wants(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.sent, want) {
		t.Errorf("the server was sent\n%s\nwant\n%s", strings.Join(r.sent, "\n"), strings.Join(want, "\n"))
	}
	r.sent = nil
}

// waitTogether starts calls while a connection is being made, so that all of them
// wait for it.
func (r *recorder) waitTogether(t *testing.T, limit time.Duration, calls ...redis.Call) (*driver, []outcome) {
	t.Helper()
	r.hello = make(chan struct{})
	d := r.driver(t)
	outcomes := startAll(d, limit, calls...)
	close(r.hello)
	return d, outcomes()
}

// startAll starts calls, and returns what waits for their answers.
func startAll(d *driver, limit time.Duration, calls ...redis.Call) func() []outcome {
	outcomes := make([]outcome, len(calls))
	var all sync.WaitGroup
	for i, call := range calls {
		all.Add(1)
		d.Start(call, limit, func(reply []string, err error) {
			outcomes[i] = outcome{strings.Join(reply, " "), err}
			all.Done()
		})
	}
	return func() []outcome { all.Wait(); return outcomes }
}

// perItem answers a batch of n keys and a marker by what f returns for each item.
func perItem(command []string, f func(name, item string) string) string {
	var n int
	fmt.Sscan(command[2], &n)
	n--
	items := command[3+n+len(common.Keys)+len(common.Args):]
	answer := fmt.Sprintf("*%d\r\n", n)
	for i := range n {
		answer += f(command[3+i], items[3*i])
	}
	return answer
}

func isBatch(command []string) bool { return len(command) > 4 && slices.Contains(command, "marker") }

func TestWaitingRequestsOfDifferentNamesAreSentAsOne(t *testing.T) {
	s := newRecorder(t, func(command []string) string {
		if !isBatch(command) {
			return "+alone\r\n"
		}
		return perItem(command, func(name, item string) string {
			switch name {
			case "refused":
				return "*2\r\n$4\r\nheld\r\n$5\r\nother\r\n"
			case "broken":
				return "*2\r\n$1\r\n!\r\n$11\r\nOOM is full\r\n"
			}
			return "+" + item + "\r\n"
		})
	})
	d, got := s.waitTogether(t, long, item("a9 one v1 t1"), item("a refused v2 t2"), item("e broken v3 t3"), item("r four v4"))
	s.wants(t, "EVALSHA 5 one refused broken four marker 1 2 3 4 5 6 a9 v1 t1 a v2 t2 e v3 t3 r v4 ")
	var server *redis.ServerError
	if got[0] != (outcome{"a9", nil}) || got[1] != (outcome{"held other", nil}) || got[3] != (outcome{"r", nil}) ||
		!errors.As(got[2].err, &server) || server.Code != "OOM" {
		t.Errorf("the answers are %v", got)
	}
	// One that waits for nobody is sent as it is.
	if got := startAll(d, long, item("a one v1 t1"))(); got[0] != (outcome{"alone", nil}) {
		t.Errorf("the answer is %v", got)
	}
	s.wants(t, "EVALSHA 1 one v1 t1")
}

func TestRequestsThatFollowFromABatchAreSentAsOne(t *testing.T) {
	s := newRecorder(t, func(c []string) string { return perItem(c, func(_, _ string) string { return "+\r\n" }) })
	s.hello = make(chan struct{})
	d, then := s.driver(t), make(chan func() []outcome, 1)
	d.Start(item("a one v"), long, func([]string, error) { then <- startAll(d, long, item("r one v"), item("r two v")) })
	d.Start(item("a two v"), long, func([]string, error) {})
	close(s.hello)
	(<-then)()
	s.wants(t, "EVALSHA 3 one two marker 1 2 3 4 5 6 a v  a v ", "EVALSHA 3 one two marker 1 2 3 4 5 6 r v  r v ")
}

func TestOnlyWhatFitsTogetherIsSentAsOne(t *testing.T) {
	s := newRecorder(t, func(command []string) string {
		if !isBatch(command) {
			return "+alone\r\n"
		}
		return perItem(command, func(name, item string) string { return "+together\r\n" })
	})
	other, alone := item("a five v5 t5"), item("a six v6 t6")
	other.Batch = &redis.Batch{Keys: common.Keys, Args: common.Args}
	alone.Batch = nil
	_, got := s.waitTogether(t, long, item("a one v1 t1"), item("a two v2 t2"), item("r one v1 t1"), item("a three v3 t3"), other, alone, item("a seven v7 t7"))
	s.wants(t,
		"EVALSHA 3 one two marker 1 2 3 4 5 6 a v1 t1 a v2 t2",
		"EVALSHA 3 one three marker 1 2 3 4 5 6 r v1 t1 a v3 t3", // one is in the batch before
		"EVALSHA 1 five v5 t5", "EVALSHA 1 six v6 t6", "EVALSHA 1 seven v7 t7")
	for i, want := range []string{"together", "together", "together", "together", "alone", "alone", "alone"} {
		if got[i] != (outcome{want, nil}) {
			t.Errorf("answer %d is %v, want %s", i, got[i], want)
		}
	}

	var many []redis.Call
	for i := range maxBatch + 2 {
		many = append(many, item(fmt.Sprintf("a many/%d v t", i)))
	}
	s.waitTogether(t, long, many...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) != 2 || !strings.HasPrefix(s.sent[0], fmt.Sprintf("EVALSHA %d ", maxBatch+1)) || !strings.HasPrefix(s.sent[1], "EVALSHA 3 ") {
		t.Errorf("%d requests were sent as %.40q", len(many), s.sent)
	}
}

func TestBatchWhoseScriptIsUnknownIsSentWithIt(t *testing.T) {
	known := false
	s := newRecorder(t, func(command []string) string {
		if known = known || command[0] == "EVAL" && command[1] == redis.BatchScript.Source; !known {
			return "-NOSCRIPT No matching script\r\n"
		}
		return perItem(command, func(name, item string) string { return "+" + name + "\r\n" })
	})
	calls := []redis.Call{item("a one v1 t1"), item("a two v2 t2")}
	_, got := s.waitTogether(t, long, calls...)
	if got[0] != (outcome{"one", nil}) || got[1] != (outcome{"two", nil}) {
		t.Errorf("the answers are %v", got)
	}
	const batch = " 3 one two marker 1 2 3 4 5 6 a v1 t1 a v2 t2"
	s.wants(t, "EVALSHA"+batch, "EVAL"+batch)
	s.waitTogether(t, long, calls...)
	s.wants(t, "EVALSHA"+batch)
}

func TestBatchThatIsRefusedIsSentOneByOne(t *testing.T) {
	s := newRecorder(t, func(command []string) string {
		switch {
		case isBatch(command):
			return "-NOPERM this user has no permissions to access one of the keys\r\n"
		case command[3] == "two":
			return "-NOPERM this user has no permissions\r\n"
		}
		return "+" + command[3] + "\r\n"
	})
	d, got := s.waitTogether(t, long, item("a one v1 t1"), item("a two v2 t2"), item("r three v3 t3"))
	var server *redis.ServerError
	if got[0] != (outcome{"one", nil}) || got[2] != (outcome{"three", nil}) || !errors.As(got[1].err, &server) || server.Code != "NOPERM" {
		t.Errorf("the answers are %v", got)
	}
	s.wants(t, "EVALSHA 4 one two three marker 1 2 3 4 5 6 a v1 t1 a v2 t2 r v3 t3", "EVALSHA 1 one v1 t1", "EVALSHA 1 two v2 t2", "EVALSHA 1 three v3 t3")
	// For a while there are no more.
	d.conn.Load().mu.Lock()
	c := d.conn.Load()
	c.pending.push(request{call: item("a one v1 t1")})
	c.pending.push(request{call: item("a three v3 t3")})
	c.unsent = 2
	sent := string(c.compose(nil))
	c.pending, c.batches.none = queue{}, 1
	c.pending.push(request{call: item("a one v1 t1")})
	c.pending.push(request{call: item("a three v3 t3")})
	c.unsent = 2
	later := string(c.compose(nil))
	c.pending = queue{}
	c.mu.Unlock()
	if n, m := strings.Count(sent, "EVALSHA"), strings.Count(later, "EVALSHA"); n != 2 || m != 1 {
		t.Errorf("two requests are sent as %d, and later as %d; want 2 and 1", n, m)
	}
}

// TestRequestIsNotSentAgainBehindALaterOne has the server refuse an acquisition, alone or
// in a batch, whose release is behind it. Sent again, the acquisition would come after
// the release, and might stay. That of another value is sent again.
func TestRequestIsNotSentAgainBehindALaterOne(t *testing.T) {
	const one, two, batch = "EVALSHA 1 one v1 t1", "EVALSHA 1 two v2 t2", "EVALSHA 3 one two marker 1 2 3 4 5 6 a v1 t1 a v2 t2"
	for _, c := range []struct {
		refusal string
		refuse  int // so many commands
		common  *redis.Batch
		sent    []string
	}{
		{"NOSCRIPT unknown", 1, common, []string{batch, one, two}},
		{"BUSY a script runs", 1, common, []string{batch, one, two}},
		{"NOSCRIPT unknown", 2, nil, []string{one, two, one, strings.Replace(two, "EVALSHA", "EVAL", 1)}},
	} {
		s := newRecorder(t, func(command []string) string {
			if c.refuse--; c.refuse >= 0 {
				return "-" + c.refusal + "\r\n"
			}
			return "+done\r\n"
		})
		calls := []redis.Call{item("a one v1 t1"), item("a two v2 t2"), item("r one v1 t1")}
		for i := range calls {
			calls[i].Batch = c.common
		}
		_, got := s.waitTogether(t, long, calls...)
		if !errors.Is(got[0].err, node.ErrUnsent) || got[1].err != nil || got[2].err != nil {
			t.Errorf("%s: the answers are %v", c.refusal, got)
		}
		s.wants(t, c.sent...)
	}
}

// TestReleaseThatAnEqualOneOvertakesHasItsAnswer has the server refuse a batch with a
// release, while a second one of the same value is behind it. If that does all that the
// first would, the first has its answer, and its time is not longer.
func TestReleaseThatAnEqualOneOvertakesHasItsAnswer(t *testing.T) {
	release := node.Request{Op: node.OpRelease, Name: "one", Value: "v1", Fencing: node.Fencing{Token: 7, Window: 10 * time.Second, Retention: time.Hour}}
	change := func(f func(*node.Request)) node.Request {
		r := release
		f(&r)
		return r
	}
	const silent = "is not answered"
	for what, c := range map[string]struct {
		later  node.Request
		answer bool
	}{
		"equal":          {release, true},
		"higher token":   {change(func(r *node.Request) { r.Token = 8 }), true},
		"ends the value": {change(func(r *node.Request) { r.NoRepair = time.Second }), true},
		"lower token":    {change(func(r *node.Request) { r.Token = 6 }), false},
		"keeps the lock": {change(func(r *node.Request) { r.Keep = time.Second }), false},
		"once":           {change(func(r *node.Request) { r.Once = true }), false},
		"is no release":  {change(func(r *node.Request) { r.Op = node.OpAcquire }), false},
		silent:           {release, false},
	} {
		for _, refusal := range []string{"NOSCRIPT unknown", "BUSY a script runs"} {
			first := true
			s := newRecorder(t, func(command []string) string {
				switch {
				case first:
					first = false
					return "-" + refusal + "\r\n"
				case what == silent:
					return ""
				}
				return ":0\r\n"
			})
			s.hello = make(chan struct{})
			n := redis.New(s.driver(t), "server")
			errs := make([]error, 3)
			var all sync.WaitGroup
			for i, req := range []node.Request{release, change(func(r *node.Request) { r.Name = "two" }), c.later} {
				all.Add(1)
				limit := long
				if i < 2 && what == silent {
					limit = 200 * time.Millisecond
				}
				n.Start(req, limit, func(_ node.Reply, err error) {
					errs[i] = err
					all.Done()
				})
			}
			close(s.hello)
			all.Wait()
			if c.answer != (errs[0] == nil) || what == silent != errors.Is(errs[0], context.DeadlineExceeded) {
				t.Errorf("%s, %s: the errors are %v", what, refusal, errs)
			}
		}
	}
}

// TestRequestThatWasGivenUpIsNotSent has requests wait behind a write that blocks,
// until nobody waits for one of them. Its caller may use the memory of its call for
// another.
func TestRequestThatWasGivenUpIsNotSent(t *testing.T) {
	s := newRecorder(t, func(command []string) string {
		if isBatch(command) {
			return perItem(command, func(name, item string) string { return "+" + name + "\r\n" })
		}
		return "+alone\r\n"
	})
	d, _ := s.waitTogether(t, long, item("a first v t"))
	stuck := stick(d.conn.Load())
	blocked := make(chan func() []outcome)
	go func() { blocked <- startAll(d, long, item("a blocked v t")) }()
	<-stuck.writing
	call := item("a late v2 t2")
	gone := startAll(d, time.Millisecond, call)
	rest := startAll(d, long, item("a one v1 t1"), item("a three v3 t3"))
	if got := gone(); !errors.Is(got[0].err, context.DeadlineExceeded) {
		t.Errorf("the answer is %v", got)
	}
	call.Keys[0], call.Args[0], call.Args[1] = "one", "v1", "another's"
	stuck.goOn()
	(<-blocked)()
	if got := rest(); got[0] != (outcome{"one", nil}) || got[1] != (outcome{"three", nil}) {
		t.Errorf("the answers are %v", got)
	}
	s.wants(t, "EVALSHA 1 first v t", "EVALSHA 1 blocked v t", "EVALSHA 3 one three marker 1 2 3 4 5 6 a v1 t1 a v3 t3")
}

// TestHalfAReplyToABatchIsNone has the server hang up, fall silent, or be left, after
// half of its reply to a batch. Each request fails, as one that may have been
// executed, and the next one is answered.
func TestHalfAReplyToABatchIsNone(t *testing.T) {
	for how, half := range map[string]string{"hang up": "*3\r\n:1\r\n$5\r\nabhang up", "fall silent": "*3\r\n:1\r\n", "be left": "*3\r\n:1\r\n", "be wrong": "*2\r\n:1\r\n:2\r\n"} {
		t.Run(how, func(t *testing.T) {
			sent := make(chan struct{}, 1)
			s := newRecorder(t, func(command []string) string {
				if !isBatch(command) {
					return "+alone\r\n"
				}
				sent <- struct{}{}
				return half
			})
			limit := long
			if how == "fall silent" {
				limit = 100 * time.Millisecond
			}
			s.hello = make(chan struct{})
			d := s.driver(t)
			outcomes := startAll(d, limit, item("a one v1 t1"), item("a two v2 t2"), item("r three v3 t3"))
			close(s.hello)
			<-sent
			if how == "be left" {
				d.Close()
			}
			want := map[string]error{"fall silent": context.DeadlineExceeded, "be left": node.ErrClosed}[how]
			for i, got := range outcomes() {
				if got.err == nil || errors.Is(got.err, node.ErrUnsent) || want != nil && !errors.Is(got.err, want) {
					t.Errorf("answer %d is %v, want %v", i, got, want)
				}
			}
			if how != "be left" {
				poll.Until(t, "the next one is answered", func() bool {
					return startAll(d, limit, item("a four v4 t4"))()[0] == outcome{"alone", nil}
				})
			}
		})
	}
}
