package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/internal/conns"
)

var must = check.Must

// server answers each command by a function. It is for what a real server never
// does; all else is tested with real servers, in package redis.
type server struct {
	listener net.Listener
	answer   func(command []string) string // "" for no answer
	conns    atomic.Int32                  // how many connections there were
	socket   atomic.Value                  // the last one, a net.Conn
	hello    chan struct{}                 // if it is not nil: closed to let clients in
}

// newServer starts a server. It answers HELLO itself.
func newServer(t testing.TB, answer func(command []string) string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &server{listener: l, answer: answer}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			s.socket.Store(c)
			all.Go(func() { s.serve(c) })
			t.Cleanup(func() { c.Close() })
		}
	})
	t.Cleanup(func() {
		l.Close()
	})
	return s
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	for r := resp.NewReader(c); ; {
		request, err := r.Read()
		if err != nil {
			return
		}
		var command []string
		for _, item := range request.Items {
			command = append(command, item.Text)
		}
		answer := "%0\r\n"
		if command[0] != "HELLO" {
			answer = s.answer(command)
		} else if s.hello != nil {
			<-s.hello
		}
		answer, last := strings.CutSuffix(answer, "hang up")
		if _, err := c.Write([]byte(answer)); err != nil || last {
			return
		}
	}
}

// driver returns a driver of the server, closed with the test.
func (s *server) driver(t testing.TB) *driver {
	t.Helper()
	return driverOf(t, "redis://"+s.listener.Addr().String())
}

// driverOf returns a driver of an address, closed with the test.
func driverOf(t testing.TB, address string) *driver {
	t.Helper()
	a, err := redis.ParseAddress(address)
	must(t, err)
	d := &driver{address: a}
	t.Cleanup(func() { d.Close() })
	return d
}

// script is a call with an argument.
func script(arg string) redis.Call {
	return redis.Call{Script: redis.NewScript("test", "return ARGV[1]"), Keys: []string{"key"}, Args: []string{arg}}
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

const long = 20 * time.Second

func TestAddressesOfOtherKindsAreRefused(t *testing.T) {
	for _, a := range []string{"redis+sentinel://host/master", "redis+cluster://host", "no address"} {
		if _, err := Nodes(a); !errors.Is(err, node.ErrConfig) {
			t.Errorf("%s: %v", a, err)
		}
	}
}

func TestRequestsThatMeetAreWrittenTogetherAndAnsweredInOrder(t *testing.T) {
	s := newServer(t, func(command []string) string { return "+" + command[len(command)-1] + "\r\n" })
	d := s.driver(t)
	_, err := d.Eval(within(t, long), script(""))
	must(t, err)
	c := d.conn.Load()
	c.mu.Lock()
	writes := &countedWrites{ReadWriteCloser: c.socket}
	c.socket = writes
	c.mu.Unlock()
	var all sync.WaitGroup
	const n = 1000
	for i := range n {
		all.Add(1)
		want := strings.Repeat("x", i)
		d.Start(script(want), long, func(reply []string, err error) {
			defer all.Done()
			if err != nil || len(reply) != 1 || reply[0] != want {
				t.Errorf("request %d: %.40q, %v", i, reply, err)
			}
		})
	}
	all.Wait()
	if got := writes.n.Load(); got > n/4 || s.conns.Load() != 1 {
		t.Errorf("%d requests took %d writes on %d connections", n, got, s.conns.Load())
	}
}

type countedWrites struct {
	io.ReadWriteCloser
	n atomic.Int32
}

func (c *countedWrites) Write(b []byte) (int, error) {
	c.n.Add(1)
	return c.ReadWriteCloser.Write(b)
}

// TestWhatIsNoAnswerBreaksTheConnection sends what a server never sends. The
// next request has a connection of its own.
func TestWhatIsNoAnswerBreaksTheConnection(t *testing.T) {
	for _, nonsense := range []string{"hang up", "?\r\n", "$-5x\r\n", ":1\r\n:2\r\n", ">3\r\n+subscribe\r\n+x\r\n:1\r\n:1\r\n:2\r\n", "*1048577\r\n"} {
		var bad atomic.Bool
		bad.Store(true)
		s := newServer(t, func([]string) string {
			if bad.Swap(false) {
				return nonsense
			}
			return ":7\r\n"
		})
		d := s.driver(t)
		d.Eval(within(t, long), script("")) // it may have been answered before
		poll.Until(t, fmt.Sprintf("an answer on the second connection, after %q", nonsense), func() bool {
			reply, err := d.Eval(within(t, long), script(""))
			return err == nil && slices.Equal(reply, []string{"7"}) && s.conns.Load() == 2
		})
	}
}

// TestReplyIsForNoRequestThatWasNotSent has a reply arrive while the only request waits
// to be written.
func TestReplyIsForNoRequestThatWasNotSent(t *testing.T) {
	c := &conn{driver: &driver{closed: true}, wake: make(chan struct{}, 1), stop: func() {}, unsent: 1}
	var got error
	c.pending.push(request{raw: func(_ resp.Reply, err error) { got = err }})
	if c.arrived(resp.Reply{Text: "7"}, nil) || got == nil {
		t.Errorf("the request has the answer 7, %v", got)
	}
}

func TestRequestWithoutAnAnswerEndsAtItsLimit(t *testing.T) {
	s := newServer(t, func([]string) string { return "" })
	d := s.driver(t)
	done := make(chan error, 1)
	start := time.Now()
	d.Start(script(""), 50*time.Millisecond, func(_ []string, err error) { done <- err })
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, node.ErrUnsent) {
		t.Errorf("got %v", err)
	}
	if early := time.Since(start); early < 50*time.Millisecond {
		t.Errorf("it ended after %v", early)
	}
	// And the connection at twice that.
	poll.Until(t, "the silent connection is not used any more", d.conn.Load().gone.Load)
}

// TestLateAnswerIsDroppedAndTheConnectionStays has an answer come when the request has
// been given up, and the connection is not silent yet: also one that had no time at all.
func TestLateAnswerIsDroppedAndTheConnectionStays(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, time.Nanosecond} {
		stall.Retry(t, func(t testing.TB) { answerComesLate(t, limit) })
	}
}

func answerComesLate(t testing.TB, limit time.Duration) {
	release := make(chan bool)
	s := newServer(t, func(command []string) string {
		if command[len(command)-1] == "late" {
			<-release
		}
		return "+" + command[len(command)-1] + "\r\n"
	})
	d := s.driver(t)
	_, err := d.Eval(within(t, long), script("first"))
	must(t, err)
	late, next := make(chan error, 2), make(chan []string, 1)
	began := time.Now()
	d.Start(script("late"), limit, func(_ []string, err error) { late <- err })
	if err := <-late; !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	d.Start(script("next"), long, func(reply []string, err error) { next <- reply })
	time.Sleep(leastSilence / 5)
	release <- true
	reply := <-next
	if !slices.Equal(reply, []string{"next"}) || len(late) > 0 || s.conns.Load() != 1 {
		stall.In(t, limit+max(limit, leastSilence)/2, began) // the server was silent for so long
		t.Errorf("the request after it got %q, and the late one was answered %d times more, on %d connections", reply, len(late), s.conns.Load())
	}
}

// TestLostReplyCostsAFewRequests has a reply be lost on its way, so that each request
// gets that of the one before it.
func TestLostReplyCostsAFewRequests(t *testing.T) {
	var lost atomic.Bool
	s := newServer(t, func(command []string) string {
		if !lost.Swap(true) {
			return ""
		}
		return ":7\r\n"
	})
	d := s.driver(t)
	for failed := 0; ; failed++ {
		done := make(chan error, 1)
		d.Start(script(""), 200*time.Millisecond, func(_ []string, err error) { done <- err })
		if err := <-done; err == nil {
			t.Logf("%d requests failed", failed)
			return
		}
		if failed == 10 {
			t.Fatalf("%d requests failed, on %d connections", failed, s.conns.Load())
		}
	}
}

// TestRequestThatWasNotSentSaysSo waits for a connection that is never made.
func TestRequestThatWasNotSentSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers HELLO
	must(t, err)
	defer l.Close()
	d := (&server{listener: l}).driver(t)
	done := make(chan error, 1)
	d.Start(script(""), 50*time.Millisecond, func(_ []string, err error) { done <- err })
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, node.ErrUnsent) {
		t.Errorf("while connecting: %v", err)
	}
	d.Start(script(""), long, func(_ []string, err error) { done <- err })
	d.Close()
	if err := <-done; !errors.Is(err, node.ErrClosed) || !errors.Is(err, node.ErrUnsent) {
		t.Errorf("closed meanwhile: %v", err)
	}
	d.Start(script(""), long, func(_ []string, err error) { done <- err })
	if err := <-done; !errors.Is(err, node.ErrClosed) || !errors.Is(err, node.ErrUnsent) {
		t.Errorf("closed before: %v", err)
	}
	l.Close()
	other := (&server{listener: l}).driver(t)
	if _, err := other.Eval(within(t, long), script("")); !errors.Is(err, node.ErrUnsent) {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestPatientRequestOutlivesOneThatIsGivenUp has a request with a short limit be given up
// before there is a connection. The server lets us in after that, or the connection is
// given up, too, and the next one is made. Only the patient request is sent.
func TestPatientRequestOutlivesOneThatIsGivenUp(t *testing.T) {
	for limit, letIn := range map[time.Duration]bool{500 * time.Millisecond: true, 20 * time.Millisecond: false} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		commands := make(chan string, 9)
		s := &server{listener: l, answer: func(command []string) string { commands <- command[len(command)-1]; return ":7\r\n" }}
		d := s.driver(t)
		short, patient := make(chan error, 1), make(chan error, 1)
		d.Start(script("short"), limit, func(_ []string, err error) { short <- err })
		d.Start(script("patient"), long, func(_ []string, err error) { patient <- err })
		first, err := l.Accept()
		must(t, err)
		defer first.Close()
		if err := <-short; !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, node.ErrUnsent) {
			t.Errorf("the short one: %v", err)
		}
		if letIn {
			go s.serve(first)
		}
		go func() { // on a busy machine, the first connection was given up in any case
			if next, err := l.Accept(); err == nil {
				s.serve(next)
			}
		}()
		if err := <-patient; err != nil {
			t.Errorf("the patient one: %v", err)
		}
		if first := <-commands; first != "patient" || len(commands) > 0 {
			t.Errorf("the server got %q, and %d more", first, len(commands))
		}
	}
}

// TestRequestThatMayHaveBeenSentDoesNotSayThatItWasNot has the server hang up after it
// has read a request, and the driver be closed.
func TestRequestThatMayHaveBeenSentDoesNotSayThatItWasNot(t *testing.T) {
	s := newServer(t, func([]string) string { return "hang up" })
	if _, err := s.driver(t).Eval(within(t, long), script("")); err == nil || errors.Is(err, node.ErrUnsent) {
		t.Errorf("got %v", err)
	}
	arrived := make(chan bool, 1)
	s = newServer(t, func([]string) string { arrived <- true; return "" })
	d := s.driver(t)
	done := make(chan error, 1)
	d.Start(script(""), long, func(_ []string, err error) { done <- err })
	<-arrived
	d.Close()
	if err := <-done; !errors.Is(err, node.ErrClosed) || errors.Is(err, node.ErrUnsent) {
		t.Errorf("closed: %v", err)
	}
}

// TestUnsentRequestsStayBeforeLaterOnes breaks the connection while a request stands
// behind one that is being written. It is on the next connection before one that is
// started when this one is known to be broken.
func TestUnsentRequestsStayBeforeLaterOnes(t *testing.T) {
	for range 50 {
		var mu sync.Mutex
		var executed []string
		s := newServer(t, func(command []string) string {
			mu.Lock()
			defer mu.Unlock()
			executed = append(executed, command[len(command)-1])
			return ":7\r\n"
		})
		d := s.driver(t)
		_, err := d.Eval(within(t, long), script("first"))
		must(t, err)
		stuck := stick(d.conn.Load())
		written := make(chan error, 1)
		go d.Start(script("written"), long, func(_ []string, err error) { written <- err })
		<-stuck.writing
		var all sync.WaitGroup
		all.Add(2)
		done := func([]string, error) { all.Done() }
		d.Start(script("acquire"), long, done)
		go stuck.of.fail(errors.New("broken"))
		for !stuck.of.gone.Load() {
			runtime.Gosched()
		}
		d.Start(script("release"), long, done)
		all.Wait()
		mu.Lock()
		if want := []string{"first", "acquire", "release"}; !slices.Equal(executed, want) || s.conns.Load() != 2 {
			t.Fatalf("the server executed %q on %d connections, want %q", executed, s.conns.Load(), want)
		}
		mu.Unlock()
		if err := <-written; err == nil || errors.Is(err, node.ErrUnsent) {
			t.Errorf("the one that may have been sent: %v", err)
		}
	}
}

// stuckSocket blocks in its first write until it goes on, or is closed.
type stuckSocket struct {
	io.ReadWriteCloser
	of      *conn
	writing chan bool
	goOn    func()
	resume  context.Context
}

// stick has the next write of a connection block.
func stick(c *conn) *stuckSocket {
	s := &stuckSocket{ReadWriteCloser: c.socket, of: c, writing: make(chan bool)}
	s.resume, s.goOn = context.WithCancel(context.Background())
	c.mu.Lock()
	c.socket = s
	c.mu.Unlock()
	return s
}

func (s *stuckSocket) Write(b []byte) (int, error) {
	if s.resume.Err() == nil {
		s.writing <- true
		<-s.resume.Done()
	}
	return s.ReadWriteCloser.Write(b)
}

func (s *stuckSocket) Close() error {
	err := s.ReadWriteCloser.Close()
	s.goOn()
	return err
}

// TestSubscriptionsShareAConnection has two of them, of which one ends. The server
// sends a message to the channel that a script is called with.
func TestSubscriptionsShareAConnection(t *testing.T) {
	push := func(parts ...string) string {
		text := ">3\r\n"
		for _, p := range parts {
			text += string(resp.AppendText(nil, p))
		}
		return text
	}
	s := newServer(t, func(command []string) string {
		switch arg := command[len(command)-1]; command[0] {
		case "SUBSCRIBE":
			return push("subscribe", arg, "1")
		case "UNSUBSCRIBE":
			return push("unsubscribe", arg, "1")
		case "PING":
			return "-MISCONF no disk\r\n"
		default:
			return push("message", arg, "hello") + ":1\r\n"
		}
	})
	d := s.driver(t)
	send := func(channel string) {
		t.Helper()
		_, err := d.Eval(within(t, long), script(channel))
		must(t, err)
	}
	send("nobody")
	var ends []func() error
	got := map[string]chan string{}
	for _, channel := range []string{"a", "b"} {
		ctx, cancel := context.WithCancel(context.Background())
		up, ended, messages := make(chan bool, 1), make(chan error, 1), make(chan string, 9)
		got[channel] = messages
		go func() {
			ended <- d.Subscribe(ctx, channel, func() { up <- true }, func(text string) { messages <- text })
		}()
		<-up
		ends = append(ends, func() error { cancel(); return <-ended })
	}
	for _, channel := range []string{"a", "b"} {
		send(channel)
		if text := <-got[channel]; text != "hello" {
			t.Errorf("%s got %q", channel, text)
		}
	}
	if err := ends[1](); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	send("a")
	send("b")
	if text := <-got["a"]; text != "hello" || len(got["b"]) > 0 {
		t.Errorf("after b has ended a got %q, and b %d messages", text, len(got["b"]))
	}
	// An error in reply to a sign of life is one.
	time.Sleep(pingEvery + pingEvery/2)
	send("a")
	if s.conns.Load() != 1 {
		t.Errorf("%d connections were made", s.conns.Load())
	}
	d.Close()
	if err := ends[0](); !errors.Is(err, node.ErrClosed) && !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestQueueKeepsTheOrder(t *testing.T) {
	var q queue
	var want []time.Duration
	for i := range time.Duration(20_000) {
		switch n := rand.IntN(1000); {
		case n < 2:
			last := rand.IntN(q.len() + 1)
			for i := range q.len() {
				q.at(i).givenUp = q.at(i).limit%2 == 1
			}
			first := len(want) - last
			want = append(want[:first], slices.DeleteFunc(want[first:], func(d time.Duration) bool { return d%2 == 1 })...)
			if got := q.drop(last); len(got) != len(want)-first {
				t.Fatalf("%d of the last %d are left, want %d", len(got), last, len(want)-first)
			}
		case n < 400 && len(want) > 0:
			if got := q.pop(); got.limit != want[0] {
				t.Fatalf("got %d, want %d", got.limit, want[0])
			}
			want = want[1:]
		default:
			q.push(request{limit: i})
			want = append(want, i)
		}
		if q.len() != len(want) || len(q.all()) != len(want) || len(want) > 0 && q.at(len(want)-1).limit != want[len(want)-1] {
			t.Fatalf("it has %d requests, want %d", q.len(), len(want))
		}
	}
}

// TestQueueKeepsNoMemoryOfABurst fills a queue once with a few requests and once with many.
func TestQueueKeepsNoMemoryOfABurst(t *testing.T) {
	for n, keeps := range map[int]bool{100: true, 50_000: false} {
		var q queue
		for range n {
			q.push(request{})
		}
		for range n {
			q.pop()
		}
		if c := cap(q.requests); c > mostSpare || keeps != (c > 0) {
			t.Errorf("after %d requests it has memory for %d", n, c)
		}
	}
}

// TestConnectionThatFailsWhenItsTimeEndsIsOnlyAnError has a server hang up in the
// moment in which the time to connect is over.
func TestConnectionThatFailsWhenItsTimeEndsIsOnlyAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	ends := make(chan context.CancelFunc, 1)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			end := <-ends
			go end()
			c.Close()
		}
	}()
	for range 500 {
		ctx, cancel := context.WithCancel(context.Background())
		ends <- cancel
		if socket, _, _, err := conns.Connect(ctx, conns.Login{Address: listener.Addr().String()}); err == nil {
			socket.Close()
			t.Error("a server that hangs up is connected to")
		}
		select {
		case <-ends: // the dial had failed already
		default:
		}
		cancel()
	}
}
