//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// together opens a node and starts requests before it is connected, so that they
// wait together and are sent in batches. It returns the answers.
func together(t testing.TB, address string, reqs ...node.Request) ([]node.Reply, []error) {
	t.Helper()
	n, err := direct.Open(address, nil)
	must(t, err)
	defer n.Close()
	replies, errs := make([]node.Reply, len(reqs)), make([]error, len(reqs))
	var all sync.WaitGroup
	for i, req := range reqs {
		req.TTL, req.Retention, req.Window = time.Hour, 4*time.Hour, time.Hour
		all.Add(1)
		n.(node.Starter).Start(req, patience, func(r node.Reply, err error) {
			replies[i], errs[i] = r, err
			all.Done()
		})
	}
	all.Wait()
	return replies, errs
}

// acquisition is a request for a name by a value.
func acquisition(name, value string) node.Request {
	return node.Request{Op: node.OpAcquire, Name: name, Value: value, Fencing: node.Fencing{Token: node.Token(time.Now().UnixMicro())}}
}

// as is a request with another operation.
func as(op node.Op, req node.Request) node.Request {
	req.Op = op
	return req
}

var scriptRuns = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

// runsOf counts the scripts that a server was sent.
func runsOf(t testing.TB, s *servertest.Server) (n int) {
	t.Helper()
	for _, m := range scriptRuns.FindAllStringSubmatch(s.Do("INFO", "commandstats"), -1) {
		calls, err := strconv.Atoi(m[1])
		must(t, err)
		n += calls
	}
	return n
}

// TestBatchAnswersEachRequestForItself has common requests and others in one batch.
// On a busy machine they may be too late for one; then they are tried again.
func TestBatchAnswersEachRequestForItself(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, 1)[0]
	poll.Until(t, "a batch of all requests", func() bool {
		s.Do("FLUSHALL")
		// By its digest, which the server may not know, and then by its source.
		return answersOfABatch(t, s) <= 2
	})
}

// answersOfABatch checks the answers, and returns how many scripts were run.
func answersOfABatch(t *testing.T, s *servertest.Server) int {
	t.Helper()
	s.Do("SET", "held", "another", "PX", "3600000")
	s.Do("RPUSH", "list", "element")
	s.Do("SET", "redlatch:1:fence:{passed}", (node.Token(time.Now().Add(time.Minute).UnixMicro())).String(), "PX", "3600000")
	for _, mine := range []string{"mine/1", "mine/2", "mine/3"} {
		s.Do("SET", mine, "value", "PX", "3600000")
	}
	reserves := as(node.OpExtend, acquisition("mine/3", "value"))
	reserves.Reserve = 5
	cases := []struct {
		req  node.Request
		want node.Status
	}{
		{acquisition("free", "value"), node.Granted},
		{as(node.OpRelease, acquisition("mine/1", "value")), node.Granted},
		{acquisition("held", "value"), node.Held},
		{acquisition("list", "value"), node.Foreign},
		{acquisition("passed", "value"), node.Stale},
		{as(node.OpExtend, acquisition("mine/2", "value")), node.Granted},
		{as(node.OpExtend, acquisition("nobody's", "value")), node.Absent},
		{as(node.OpRelease, acquisition("unknown", "value")), node.Absent},
		{acquisition("free too", "value"), node.Granted},
		{reserves, node.Granted},
	}
	var reqs []node.Request
	for _, c := range cases {
		reqs = append(reqs, c.req)
	}
	before := runsOf(t, s)
	replies, errs := together(t, s.URL(), reqs...)
	for i, c := range cases {
		if errs[i] != nil || replies[i].Status != c.want || replies[i].Confirmed != (c.req.Reserve > 0) {
			t.Errorf("%v of %q is answered %+v, %v; want %v", c.req.Op, c.req.Name, replies[i], errs[i], c.want)
		}
	}
	if replies[2].Value != "another" || replies[2].Left <= 0 {
		t.Errorf("the holder is %q for %v", replies[2].Value, replies[2].Left)
	}
	n := runsOf(t, s) - before
	for name, want := range map[string]string{"free": "value", "free too": "value", "mine/1": "", "held": "another", "passed": ""} {
		if got := s.Do("GET", name); got != want {
			t.Errorf("%q has %q, want %q", name, got, want)
		}
	}
	return n
}

var commandRuns = regexp.MustCompile(`cmdstat_(time|mget|get|info|set|del|pexpire|pttl|type|z[a-z]+):calls=(\d+)`)

// TestCommonRequestsRunFewCommands counts what the server executes inside scripts,
// for one request and for sixteen that are sent as one. Those that come too late to be
// sent with the others make another batch, so it tries several times.
func TestCommonRequestsRunFewCommands(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, 1)[0]
	n, err := direct.Open(s.URL(), nil)
	must(t, err)
	defer n.Close()
	guard := &node.Guard{Membership: "0123456789abcdef", Nodes: "a b c", MaxTTL: time.Hour, Window: time.Hour, Quarantine: time.Second}
	do := func(req node.Request) {
		t.Helper()
		req.Guard, req.Retention, req.Window, req.TTL = guard, 4*time.Hour, time.Hour, time.Hour
		if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Granted {
			t.Errorf("%v is answered %v, %v", req.Op, r, err)
		}
	}
	_, err = n.(node.Guarded).Mark(t.Context(), node.MarkRequest{Mark: node.MarkFresh, Guard: guard})
	must(t, err)
	do(acquisition("first", "value")) // by it the client learns the marker
	executed := func(what func()) string {
		s.Do("CONFIG", "RESETSTAT")
		what()
		counts := map[string]string{}
		for _, m := range commandRuns.FindAllStringSubmatch(s.Do("INFO", "commandstats"), -1) {
			counts[m[1]] = m[2]
		}
		return fmt.Sprint(counts)
	}
	one := acquisition("name", "value")
	var many []node.Request
	all := func(op node.Op) func() {
		return func() {
			t.Helper()
			var reqs []node.Request
			for _, req := range many {
				reqs = append(reqs, as(op, req))
			}
			replies, errs := together(t, s.URL(), reqs...)
			for i := range replies {
				if errs[i] != nil || replies[i].Status != node.Granted {
					t.Errorf("%v %d is answered %v, %v", op, i, replies[i], errs[i])
				}
			}
		}
	}
	type count struct {
		name string
		what func()
		want string
	}
	different := func(counts ...count) (errs []string) {
		t.Helper()
		for _, c := range counts {
			if got := executed(c.what); got != c.want {
				errs = append(errs, fmt.Sprintf("%s: the server executed %s, want %s", c.name, got, c.want))
			}
		}
		return errs
	}
	for _, err := range different(
		count{"acquire", func() { do(one) }, "map[info:1 mget:1 set:2 time:1]"},
		count{"extend", func() { do(as(node.OpExtend, one)) }, "map[info:1 mget:1 pexpire:2 pttl:1 time:1]"},
		count{"release", func() { do(as(node.OpRelease, one)) }, "map[del:1 mget:1]"},
	) {
		t.Error(err)
	}
	var errs []string
	for try, end := 0, time.Now().Add(patience); time.Now().Before(end); try++ {
		many = nil
		for i := range 16 {
			many = append(many, acquisition(fmt.Sprintf("many/%d/%d", try, i), "value"))
		}
		if errs = different(
			count{"16 acquires", all(node.OpAcquire), "map[info:1 mget:1 set:32 time:1]"},
			count{"16 extensions", all(node.OpExtend), "map[info:1 mget:1 pexpire:32 pttl:16 time:1]"},
			count{"16 releases", all(node.OpRelease), "map[del:16 mget:1 time:1]"},
		); len(errs) == 0 {
			return
		}
	}
	t.Error(errs)
}

// TestBatchOnAFullServer has acquisitions before and behind requests that a full
// server executes. On a busy machine they may be too late for one batch; then they are
// tried again.
func TestBatchOnAFullServer(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, 1)[0]
	together(t, s.URL(), acquisition("known/1", "value"), acquisition("known/2", "value")) // the script
	release := as(node.OpRelease, acquisition("mine/1", "value"))
	release.Token = 0
	var replies []node.Reply
	var errs []error
	for runs, end := 0, time.Now().Add(patience); runs != 1; {
		if time.Now().After(end) {
			t.Fatalf("%d scripts were run, want one: an error of a request is its own", runs)
		}
		s.Do("CONFIG", "SET", "maxmemory", "0")
		for _, mine := range []string{"mine/1", "mine/2"} {
			s.Do("SET", mine, "value", "PX", "3600000")
		}
		s.Do("CONFIG", "SET", "maxmemory", "1")
		before := runsOf(t, s)
		replies, errs = together(t, s.URL(), acquisition("before", "value"), release, as(node.OpExtend, acquisition("mine/2", "value")), acquisition("behind", "value"))
		runs = runsOf(t, s) - before
	}
	for _, i := range []int{0, 3} {
		if server, ok := errors.AsType[*redis.ServerError](errs[i]); !ok || server.Code != "OOM" || !errors.Is(errs[i], node.ErrUnsent) {
			t.Errorf("acquisition %d is answered %v, %v; want OOM, and nothing done", i, replies[i], errs[i])
		}
	}
	for _, i := range []int{1, 2} {
		if errs[i] != nil || replies[i].Status != node.Granted {
			t.Errorf("request %d is answered %v, %v", i, replies[i], errs[i])
		}
	}
	if got := s.Do("EXISTS", "before", "behind", "mine/1"); got != "0" {
		t.Errorf("%s keys are there, want none", got)
	}
}

// TestErrorInABatchIsOneFromWithinAScript has the release of a lock whose queue is no
// queue. It ends half way, so it may not be taken for a request that was not sent.
func TestErrorInABatchIsOneFromWithinAScript(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, 1)[0]
	s.Do("SET", "broken", "value", "PX", "3600000")
	s.Do("SET", "redlatch:1:turn:{broken}", "odd")
	s.Do("SET", "redlatch:1:queue:{broken}", "odd")
	replies, errs := together(t, s.URL(), acquisition("free", "value"), as(node.OpRelease, acquisition("broken", "value")))
	if errs[0] != nil || replies[0].Status != node.Granted {
		t.Errorf("the other one is answered %v, %v", replies[0], errs[0])
	}
	if server, ok := errors.AsType[*redis.ServerError](errs[1]); !ok || server.Code != "WRONGTYPE" || errors.Is(errs[1], node.ErrUnsent) {
		t.Errorf("the release is answered %v, %v", replies[1], errs[1])
	}
}

// TestBatchWithARightThatIsMissing has a user that may lock only some of the names.
func TestBatchWithARightThatIsMissing(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, 1)[0]
	s.Do(documentedUser(t)...)
	replies, errs := together(t, asUser(s, "locks:PASSWORD"), acquisition("orders/1", "value"), acquisition("customers/1", "value"), acquisition("orders/2", "value"))
	for _, i := range []int{0, 2} {
		if errs[i] != nil || replies[i].Status != node.Granted {
			t.Errorf("request %d is answered %v, %v", i, replies[i], errs[i])
		}
	}
	if server, ok := errors.AsType[*redis.ServerError](errs[1]); !ok || !server.Forbidden() {
		t.Errorf("the name outside the pattern is answered %v, %v", replies[1], errs[1])
	}
}

func TestBatchOnABusyServer(t *testing.T) {
	t.Parallel()
	s := startBusy(t, 1)[0]
	n, err := direct.Open(s.URL(), nil)
	must(t, err)
	defer n.Close()
	_, _, err = n.(node.Identifier).Identity(t.Context()) // connected before
	must(t, err)
	occupy(t, s)
	ask := func() (errs [8]error) {
		var all sync.WaitGroup
		for i := range errs {
			req := acquisition(fmt.Sprint("busy/", i), "value")
			req.TTL, req.Retention, req.Window = time.Hour, 4*time.Hour, time.Hour
			all.Add(1)
			n.(node.Starter).Start(req, patience, func(_ node.Reply, err error) {
				errs[i] = err
				all.Done()
			})
		}
		all.Wait()
		return errs
	}
	for i, err := range ask() {
		if server, ok := errors.AsType[*redis.ServerError](err); !ok || server.Code != "BUSY" || !errors.Is(err, node.ErrUnsent) {
			t.Errorf("request %d is answered %v, want BUSY", i, err)
		}
	}
	s.Do("SCRIPT", "KILL")
	eventually(t, patience, func() error { return errors.Join(errorsOf(ask())...) })
}

func errorsOf(errs [8]error) []error { return errs[:] }

// TestRequestsToAClusterAreSentAlone has a client that takes a Cluster for one
// server. Its requests for names of several slots are answered all the same.
func TestRequestsToAClusterAreSentAlone(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, 1, "--cluster-enabled", "yes")[0]
	s.Do("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	eventually(t, patience, func() error {
		if !strings.Contains(s.Do("CLUSTER", "INFO"), "cluster_state:ok") {
			return errors.New("the cluster is not up yet")
		}
		return nil
	})
	var reqs []node.Request
	for i := range 10 {
		reqs = append(reqs, acquisition(fmt.Sprint("slot/", i), "value"))
	}
	replies, errs := together(t, s.URL(), reqs...)
	for i := range reqs {
		if errs[i] != nil || replies[i].Status != node.Granted {
			t.Errorf("request %d is answered %v, %v", i, replies[i], errs[i])
		}
	}
}

// TestThousandGoroutinesInBatches has a thousand goroutines lock forty names over
// one connection a server, while scripts are forgotten. No two hold a name at once,
// tokens grow, and what is sent is less than one script a request.
func TestThousandGoroutinesInBatches(t *testing.T) {
	t.Parallel()
	const names, goroutines, pairs = 40, 1000, 3
	s := servertest.Redis(t, 1)[0]
	nodes, err := direct.Nodes(s.URL())
	must(t, err)
	c := newClient(t, nodes, redlatch.Options{})
	var held [names]atomic.Int32
	var last [names]atomic.Uint64
	var all sync.WaitGroup
	before := runsOf(t, s)
	for g := range goroutines {
		all.Go(func() {
			for range pairs {
				i := g % names
				err := c.Do(context.Background(), fmt.Sprint("name/", i), nil, func(_ context.Context, l *redlatch.Lease) error {
					if held[i].Add(1) != 1 {
						exclusion.Never(t, "name %d is held twice", i)
					}
					if token := uint64(l.Token()); last[i].Swap(token) >= token {
						exclusion.Never(t, "the token of name %d did not grow", i)
					}
					held[i].Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		s.Do("SCRIPT", "FLUSH")
	}
	all.Wait()
	if runs := runsOf(t, s) - before; runs > goroutines*pairs*2 {
		t.Errorf("%d scripts were run for %d pairs", runs, goroutines*pairs)
	}
	eventually(t, undone, noKeys([]*servertest.Server{s}))
}
