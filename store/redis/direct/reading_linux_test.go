package direct

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
)

// readerOf returns who reads.
func readerOf(c *conn) reader {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reader
}

// rested returns the connection of a driver after so many lone requests that
// callers read. One that comes before the goroutine of the connection has rested from
// the last is not alone.
func rested(t testing.TB, d *driver) (c *conn) {
	t.Helper()
	poll.Until(t, "callers may read", func() bool {
		if c = d.conn.Load(); c != nil && !c.gone.Load() && readerOf(c) == nobody {
			return true
		}
		for range calmAfter {
			_, err := d.do(context.Background(), "PING")
			must(t, err)
		}
		return false
	})
	return c
}

// answer is what a request got.
type answer struct {
	reply []string
	err   error
}

// ask sends a request and reads its reply, as a caller does. byCaller says whether
// the reply was passed on before Read returned.
func ask(t testing.TB, d *driver, call redis.Call, limit time.Duration) (_ answer, byCaller bool) {
	t.Helper()
	loan := d.Lend()
	if loan == nil {
		t.Fatal("the caller may not read")
	}
	answers, done := make(chan answer, 1), make(chan struct{}, 1)
	d.Start(call, limit, func(reply []string, err error) {
		answers <- answer{slices.Clone(reply), err}
		done <- struct{}{}
	})
	loan.Read(done, limit)
	byCaller = len(answers) > 0
	return <-answers, byCaller
}

// startEach starts a request for each argument. What they got comes in order, and
// done has something once the first has its reply.
func startEach(d *driver, limit time.Duration, args ...string) (got <-chan answer, done chan struct{}) {
	answers := make(chan answer, len(args))
	done = make(chan struct{}, 1)
	for i, arg := range args {
		d.Start(script(arg), limit, func(reply []string, err error) {
			answers <- answer{slices.Clone(reply), err}
			if i == 0 {
				done <- struct{}{}
			}
		})
	}
	return answers, done
}

// wantAnswers checks that replies are the arguments of their requests.
func wantAnswers(t testing.TB, got <-chan answer, want ...string) {
	t.Helper()
	for _, want := range want {
		select {
		case a := <-got:
			if a.err != nil || !slices.Equal(a.reply, []string{want}) {
				t.Errorf("got %q, %v, want %q", a.reply, a.err, want)
			}
		case <-time.After(long):
			t.Fatalf("there is no answer to the %s request", want)
		}
	}
}

func TestCallerReadsOnlyWhereItIsAlone(t *testing.T) {
	server := servertest.Redis(t, 1)[0]
	d := driverOf(t, server.URL())
	if d.Lend() != nil {
		t.Error("it may read before there is a connection")
	}
	c := rested(t, d)
	loan := d.Lend()
	if loan == nil || d.Lend() != nil {
		t.Fatal("not exactly one caller may read")
	}
	loan.Read(make(chan struct{}), long) // nothing is to be read
	if readerOf(c) != nobody {
		t.Error("after a caller that had nothing to read others may not")
	}
	// Another request is pending: BLPOP has no reply.
	go d.do(t.Context(), "BLPOP", "nothing", "1")
	poll.Until(t, "BLPOP is sent", func() bool { return readerOf(c) == itself })
	if d.Lend() != nil {
		t.Error("it may read though another request is pending")
	}
	poll.Until(t, "the connection's goroutine has stopped reading", func() bool { return readerOf(c) == nobody })

	ctx, cancel := context.WithCancel(t.Context())
	up, ended := make(chan bool), make(chan error)
	go func() { ended <- d.Subscribe(ctx, "channel", func() { up <- true }, func(string) {}) }()
	<-up
	for range slowCalm {
		if _, err := d.do(t.Context(), "PING"); err != nil || d.Lend() != nil {
			t.Fatalf("%v, or it may read though somebody listens", err)
		}
	}
	cancel()
	<-ended
	rested(t, d)

	for _, off := range []string{"?caller_reads=off", "/0?caller_reads=off"} {
		d := driverOf(t, server.URL()+off)
		for range slowCalm {
			if _, err := d.do(t.Context(), "PING"); err != nil || d.Lend() != nil {
				t.Fatalf("%v, or it may read though that is switched off", err)
			}
		}
	}
	d = driverOf(t, server.URL())
	d.lends.Store(false) // as in a client with several nodes
	if _, err := d.do(t.Context(), "PING"); err != nil || d.conn.Load().quiet != nil {
		t.Errorf("%v, or the socket is one for callers, and nobody will read", err)
	}
	if newQuiet(struct{ net.Conn }{}) != nil {
		t.Error("it may read from what is no TCP connection, such as TLS")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	d = driverOf(t, server.URL())
	if _, err := d.do(t.Context(), "PING"); err != nil || d.conn.Load().quiet != nil {
		t.Errorf("%v, or it may read on the only processor", err)
	}
}

// TestRequestBesideACallerThatReadsDoesNotWaitForIt has a second request arrive
// while a caller reads. The server answers none of them before it has both, and
// answers the second one when the caller has left, and is stuck.
func TestRequestBesideACallerThatReadsDoesNotWaitForIt(t *testing.T) {
	second, goOn := make(chan bool, 1), make(chan bool, 1)
	s := newServer(t, func(command []string) string {
		switch command[len(command)-1] {
		case "first":
			return "" // with the second
		case "second":
			second <- true
			<-goOn
			return "+first\r\n"
		case "third":
			<-goOn
			return "+second\r\n+third\r\n"
		}
		return ":1\r\n"
	})
	d := s.driver(t)
	rested(t, d)
	loan := d.Lend()
	got, done := startEach(d, long, "first", "second")
	<-second // it was sent though the caller has not read
	third, _ := startEach(d, long, "third")
	goOn <- true
	loan.Read(done, long)
	wantAnswers(t, got, "first")
	// The caller reads no more, and the others are answered.
	goOn <- true
	wantAnswers(t, got, "second")
	wantAnswers(t, third, "third")
}

// TestCallerPassesOnWhatArrivedWithItsReply has one parcel with three replies, of
// which the last is not whole.
func TestCallerPassesOnWhatArrivedWithItsReply(t *testing.T) {
	rest := make(chan bool)
	s := newServer(t, func(command []string) string {
		switch command[len(command)-1] {
		case "third":
			return "+first\r\n+second\r\n$5\r\nth"
		case "fourth":
			<-rest
			return "ird\r\n+fourth\r\n"
		case "first", "second":
			return ""
		}
		return ":1\r\n"
	})
	d := s.driver(t)
	c := rested(t, d)
	loan := d.Lend()
	got, done := startEach(d, long, "first", "second", "third", "fourth")
	poll.Until(t, "something has arrived", c.quiet.unread)
	loan.Read(done, long)
	wantAnswers(t, got, "first", "second")
	rest <- true
	wantAnswers(t, got, "third", "fourth")
}

// TestHalfAReplyThatACallerReadsIsNone has a server hang up, or be silent for good,
// after half of a reply. A silent connection is replaced: the caller has its answer at
// its deadline, another request at its own.
func TestHalfAReplyThatACallerReadsIsNone(t *testing.T) {
	for half, silent := range map[string]bool{"$100\r\nxhang up": false, "$100\r\nx": true} {
		s := newServer(t, func(command []string) string {
			switch command[len(command)-1] {
			case "half":
				return half
			case "other":
				return ""
			}
			return "+next\r\n"
		})
		d := s.driver(t)
		c := rested(t, d)
		const limit = 300 * time.Millisecond
		loan, start := d.Lend(), time.Now()
		got, done := startEach(d, limit, "half")
		poll.Until(t, "half of it has arrived", c.quiet.unread)
		begin := time.Now()
		loan.Read(done, limit)
		if read := time.Since(begin); silent && read >= limit {
			t.Errorf("the caller read for %v", read)
		}
		var other <-chan answer
		if silent {
			other, _ = startEach(d, 2*limit, "other")
		}
		if a := <-got; a.err == nil || errors.Is(a.err, node.ErrUnsent) || errors.Is(a.err, context.DeadlineExceeded) != silent || silent && time.Since(start) < limit {
			t.Errorf("silent %v: after %v: %v", silent, time.Since(start), a.err)
		}
		if silent {
			if a := <-other; a.err == nil || errors.Is(a.err, node.ErrUnsent) {
				t.Errorf("the request behind it: %v", a.err)
			}
		}
		poll.Until(t, "the connection is not used any more", c.gone.Load)
		rested(t, d)
		if a, _ := ask(t, d, script("next"), long); a.err != nil || a.reply[0] != "next" {
			t.Errorf("the next one: %q, %v", a.reply, a.err)
		}
	}
}

// TestErrorsOfAServerReachTheCallerThatReads has a server that does not know a script,
// and then is full.
func TestErrorsOfAServerReachTheCallerThatReads(t *testing.T) {
	s := newServer(t, func(command []string) string {
		switch command[0] {
		case "EVALSHA":
			return "-NOSCRIPT unknown\r\n"
		case "EVAL":
			return "-OOM full\r\n"
		}
		return ":1\r\n"
	})
	d := s.driver(t)
	for range 2 {
		rested(t, d)
		a, _ := ask(t, d, script("x"), long)
		var server *redis.ServerError
		if !errors.As(a.err, &server) || server.Code != "OOM" || s.conns.Load() != 1 {
			t.Errorf("got %q, %v, over %d connections", a.reply, a.err, s.conns.Load())
		}
	}
}

// TestReplyThatTakesLongIsReadByTheConnection also has a reply that does not fit
// into the buffer.
func TestReplyThatTakesLongIsReadByTheConnection(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	s := newServer(t, func(command []string) string {
		switch command[len(command)-1] {
		case "slow":
			time.Sleep(50 * time.Millisecond)
		case "large":
			return string(resp.AppendText(nil, large))
		}
		return ":1\r\n"
	})
	d := s.driver(t)
	c := rested(t, d)
	if a, byCaller := ask(t, d, script("slow"), long); a.err != nil || byCaller || readerOf(c) != itself {
		t.Errorf("slow: %v, by the caller: %v", a.err, byCaller)
	}
	for range slowCalm / 2 { // for a while others read
		if _, err := d.do(t.Context(), "PING"); err != nil || d.Lend() != nil {
			t.Fatalf("%v, or the next caller tries at once", err)
		}
	}
	rested(t, d)
	if a, byCaller := ask(t, d, script("large"), long); a.err != nil || a.reply[0] != large || byCaller {
		t.Errorf("large: %v, %d bytes, by the caller: %v", a.err, len(a.reply[0]), byCaller)
	}
}

// TestConnectionThatEndsIsGone has a server hang up while nobody reads, and after the
// reply that a caller reads: it has its reply, and no request is lost on the connection.
func TestConnectionThatEndsIsGone(t *testing.T) {
	s := newServer(t, func(command []string) string {
		if command[len(command)-1] == "last" {
			return "+last\r\nhang up"
		}
		return ":1\r\n"
	})
	for i := range 50 {
		d := s.driver(t)
		c := rested(t, d)
		if i%2 == 0 {
			s.socket.Load().(net.Conn).Close()
		} else if a, _ := ask(t, d, script("last"), long); a.err != nil || a.reply[0] != "last" {
			t.Errorf("the last reply: %q, %v", a.reply, a.err)
		}
		poll.Until(t, "somebody notices that the server hung up", c.gone.Load)
		if _, err := d.do(t.Context(), "PING"); err != nil {
			t.Error(err)
		}
	}
	// A caller may see it before the connection's goroutine does.
	socket, err := net.Dial("tcp", s.listener.Addr().String())
	must(t, err)
	c := &conn{quiet: newQuiet(socket), reader: nobody}
	defer c.quiet.Close()
	if lent, _ := c.lend(); !lent {
		t.Error("a caller may not read")
	}
	c.quiet.Write([]byte("no command\r\n")) // after which the server hangs up
	poll.Until(t, "the server hangs up", c.quiet.unread)
	c.reader = nobody
	if lent, useless := c.lend(); lent || !useless {
		t.Error("a caller reads from a server that hung up")
	}
}

// TestWhatWasNotAskedForIsNoReply has a server send something by itself while
// nobody reads. The next caller must not take it for its reply.
func TestWhatWasNotAskedForIsNoReply(t *testing.T) {
	s := newServer(t, func(command []string) string { return "+" + command[len(command)-1] + "\r\n" })
	d := s.driver(t)
	c := rested(t, d)
	s.socket.Load().(net.Conn).Write([]byte("+granted\r\n"))
	poll.Until(t, "it has arrived", func() bool { return c.gone.Load() || c.quiet.unread() })
	if d.Lend() != nil {
		t.Fatal("a caller may read what was not asked for")
	}
	poll.Until(t, "the connection is not used any more", c.gone.Load)
	rested(t, d)
	if a, _ := ask(t, d, script("mine"), long); a.err != nil || a.reply[0] != "mine" {
		t.Errorf("got %q, %v", a.reply, a.err)
	}
}

// TestRequestThatACallerReadsWhenItIsClosedMayHaveBeenSent closes the driver while
// callers read.
func TestRequestThatACallerReadsWhenItIsClosedMayHaveBeenSent(t *testing.T) {
	server := newServer(t, func(command []string) string {
		if command[len(command)-1] == "never" {
			return ""
		}
		return ":1\r\n"
	})
	for i := range 50 {
		d := server.driver(t)
		rested(t, d)
		go func() {
			time.Sleep(time.Duration(i) * 40 * time.Microsecond)
			d.Close()
		}()
		loan := d.Lend()
		if loan == nil {
			continue // it was closed before
		}
		got, done := startEach(d, long, "never")
		loan.Read(done, long)
		if a := <-got; !errors.Is(a.err, node.ErrClosed) {
			t.Errorf("got %v", a.err)
		}
	}
}

// TestSignalsDoNotProlongAWait has signals interrupt the wait again and again.
func TestSignalsDoNotProlongAWait(t *testing.T) {
	c := rested(t, driverOf(t, servertest.Redis(t, 1)[0].URL()))
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR2)
	defer signal.Stop(got)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := syscall.Gettid()
	const limit = 200 * time.Millisecond
	stop, start := make(chan bool, 1), time.Now()
	var all sync.WaitGroup
	all.Go(func() {
		for time.Since(start) < long/4 && len(stop) == 0 {
			syscall.Tgkill(os.Getpid(), thread, syscall.SIGUSR2)
			time.Sleep(time.Millisecond)
		}
	})
	_, came := c.quiet.await(limit)
	took := time.Since(start)
	stop <- true
	all.Wait()
	if came || took < limit || took > long/8 || len(got) == 0 {
		t.Errorf("it took %v, want %v; something came: %v, signals: %v", took, limit, came, len(got) > 0)
	}
}

func TestChildInheritsNoDescriptor(t *testing.T) {
	d := driverOf(t, servertest.Redis(t, 1)[0].URL())
	c := rested(t, d)
	if c.quiet == nil {
		t.Fatal("the socket is an ordinary one")
	}
	out, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
	must(t, err)
	if text := string(out); strings.Contains(text, "socket:") || strings.Contains(text, "eventpoll") || !strings.Contains(text, "/proc/") {
		t.Errorf("a child has\n%s", out)
	}
}

// count returns how many entries a folder has.
func count(t testing.TB, folder string) int {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	return len(entries)
}

// TestNothingIsLeftOfAConnection opens and closes drivers, some of them while a
// caller reads, and some on a server that hangs up.
func TestNothingIsLeftOfAConnection(t *testing.T) {
	s := servertest.Redis(t, 1)[0]
	round := func(i int) {
		d := driverOf(t, s.URL())
		defer d.Close()
		rested(t, d)
		switch i % 3 {
		case 0:
			ask(t, d, script("x"), long)
		case 1:
			go d.Close()
			if loan := d.Lend(); loan != nil {
				_, done := startEach(d, long, "x")
				loan.Read(done, long)
			}
		case 2:
			s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			poll.Until(t, "it is gone", d.conn.Load().gone.Load)
		}
	}
	for i := range 9 {
		round(i)
	}
	var files, goroutines int
	poll.Until(t, "it settles", func() bool { // a goroutine may be about to end
		files, goroutines = count(t, "/proc/self/fd"), runtime.NumGoroutine()
		time.Sleep(50 * time.Millisecond)
		return files == count(t, "/proc/self/fd") && goroutines == runtime.NumGoroutine()
	})
	threads := count(t, "/proc/self/task")
	for i := range 60 {
		round(i)
	}
	poll.Until(t, "all descriptors are closed", func() bool { return count(t, "/proc/self/fd") <= files })
	poll.Until(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := count(t, "/proc/self/task"); now > threads+8 {
		t.Errorf("there were %d threads, and are %d", threads, now)
	}
}
