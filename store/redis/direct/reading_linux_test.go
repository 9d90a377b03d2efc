package direct

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/resp"
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

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(long); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// rested returns the connection of a driver after so many lone requests that
// callers read.
func rested(t testing.TB, d *driver) *conn {
	t.Helper()
	for range slowCalm + calmAfter {
		if _, err := d.do(context.Background(), "PING"); err != nil {
			t.Fatal(err)
		}
	}
	c := d.conn.Load()
	eventually(t, "callers may not read", func() bool { return readerOf(c) == nobody })
	return c
}

// driverOf returns a driver of an address, closed with the test.
func driverOf(t testing.TB, address string) *driver {
	t.Helper()
	a, err := redis.ParseAddress(address)
	must(t, err)
	d := &driver{address: a}
	d.WillLend()
	t.Cleanup(func() { d.Close() })
	return d
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

func TestCallerThatIsAloneReadsItsReply(t *testing.T) {
	d := driverOf(t, servertest.Redis(t, 1)[0].URL())
	c := rested(t, d)
	read := 0
	for range 100 { // on a busy machine some take longer than a caller reads
		if readerOf(c) != nobody {
			c = rested(t, d)
		}
		a, byCaller := ask(t, d, script("mine"), long)
		if a.err != nil || !slices.Equal(a.reply, []string{"mine"}) {
			t.Fatalf("got %q, %v", a.reply, a.err)
		}
		if byCaller {
			read++
		}
	}
	if read < 10 {
		t.Errorf("the caller read %d of 100 replies", read)
	}
}

// TestRequestIsNotSentToAServerThatHungUp has a server close the connection after a
// reply. Mostly the next caller sees that before the connection's goroutine does.
func TestRequestIsNotSentToAServerThatHungUp(t *testing.T) {
	s := newServer(t, func(command []string) string {
		if command[len(command)-1] == "last" {
			return "+last\r\nhang up"
		}
		return "+reply\r\n"
	})
	seen, lost := 0, 0
	for end := time.Now().Add(long); seen < 10 && time.Now().Before(end); {
		d := s.driver(t)
		c := rested(t, d)
		ask(t, d, script("last"), long)
		hungUp := func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.reader == nobody && c.broken == nil && c.quiet.unread()
		}
		for range 2000 { // without leaving the processor
			if hungUp() {
				break
			}
		}
		if hungUp() {
			seen++
			if d.Lend() != nil {
				t.Fatal("a caller reads from a server that hung up")
			}
			answers := make(chan error, 1)
			d.Start(script("next"), long, func(_ []string, err error) { answers <- err })
			if err := <-answers; err != nil {
				lost++ // the connection's goroutine has begun to read
			}
		}
		d.Close()
	}
	if lost > seen/2 || seen == 0 {
		t.Errorf("%d of %d requests were lost after the server hung up", lost, seen)
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
	eventually(t, "BLPOP is not sent", func() bool { return readerOf(c) == itself })
	if d.Lend() != nil {
		t.Error("it may read though another request is pending")
	}
	eventually(t, "the connection's goroutine goes on reading", func() bool { return readerOf(c) == nobody })

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
	answers, done := make(chan string, 3), make(chan struct{}, 1)
	passOn := func(reply []string, err error) {
		if err != nil {
			reply = []string{err.Error()}
		}
		answers <- reply[0]
	}
	d.Start(script("first"), long, func(reply []string, err error) { passOn(reply, err); done <- struct{}{} })
	d.Start(script("second"), long, passOn)
	<-second // it was sent though the caller has not read
	d.Start(script("third"), long, passOn)
	goOn <- true
	loan.Read(done, long)
	if got := <-answers; got != "first" {
		t.Fatalf("the first answer is %q", got)
	}
	// The caller reads no more, and the others are answered.
	goOn <- true
	for _, want := range []string{"second", "third"} {
		select {
		case got := <-answers:
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		case <-time.After(long):
			t.Fatalf("there is no answer to the %s request: it waits for the caller", want)
		}
	}
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
	answers, done := make(chan string, 4), make(chan struct{}, 1)
	for i, arg := range []string{"first", "second", "third", "fourth"} {
		d.Start(script(arg), long, func(reply []string, err error) {
			if err != nil {
				reply = []string{err.Error()}
			}
			answers <- reply[0]
			if i == 0 {
				done <- struct{}{}
			}
		})
	}
	eventually(t, "nothing has arrived", c.quiet.unread)
	loan.Read(done, long)
	for _, want := range []string{"first", "second"} {
		if got := <-answers; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	rest <- true
	for _, want := range []string{"third", "fourth"} {
		if got := <-answers; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// halfProxy is between a driver and a real server. When it is armed, it passes on
// half of the next reply, and then hangs up or is silent for good. New connections
// work.
type halfProxy struct {
	listener net.Listener
	armed    atomic.Bool
	hangUp   bool
	halved   chan bool
}

func newHalfProxy(t testing.TB, target string, hangUp bool) *halfProxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &halfProxy{listener: l, hangUp: hangUp, halved: make(chan bool, 1)}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			t.Cleanup(func() { client.Close(); server.Close() })
			go io.Copy(server, client)
			go p.replies(client, server)
		}
	}()
	return p
}

func (p *halfProxy) replies(client, server net.Conn) {
	b := make([]byte, 16<<10)
	for {
		n, err := server.Read(b)
		if err != nil {
			client.Close()
			return
		}
		if p.armed.Swap(false) {
			client.Write(b[:n/2])
			if p.hangUp {
				client.Close()
			}
			p.halved <- true
			return
		}
		client.Write(b[:n])
	}
}

func (p *halfProxy) url() string { return "redis://" + p.listener.Addr().String() }

func TestConnectionIsCutInTheMiddleOfAReplyThatACallerReads(t *testing.T) {
	p := newHalfProxy(t, servertest.Redis(t, 1)[0].Addr(), true)
	d := driverOf(t, p.url())
	c := rested(t, d)
	p.armed.Store(true)
	loan := d.Lend()
	errs, done := make(chan error, 1), make(chan struct{}, 1)
	d.Start(script(strings.Repeat("x", 100)), long, func(_ []string, err error) { errs <- err; done <- struct{}{} })
	<-p.halved
	loan.Read(done, long)
	if err := <-errs; err == nil || errors.Is(err, node.ErrUnsent) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v; want an error of a request that may have been executed", err)
	}
	if !c.gone.Load() {
		t.Error("the connection is still used")
	}
	rested(t, d)
	if a, _ := ask(t, d, script("next"), long); a.err != nil || a.reply[0] != "next" {
		t.Errorf("the next one: %q, %v", a.reply, a.err)
	}
}

// TestServerIsFrozenAfterHalfAReplyThatACallerReads: the caller has its answer at
// its deadline, another request at its own, and the connection is replaced.
func TestServerIsFrozenAfterHalfAReplyThatACallerReads(t *testing.T) {
	p := newHalfProxy(t, servertest.Redis(t, 1)[0].Addr(), false)
	d := driverOf(t, p.url())
	c := rested(t, d)
	p.armed.Store(true)
	const limit = 300 * time.Millisecond
	loan := d.Lend()
	late, done, other := make(chan error, 1), make(chan struct{}, 1), make(chan error, 1)
	start := time.Now()
	d.Start(script(strings.Repeat("x", 100)), limit, func(_ []string, err error) { late <- err })
	<-p.halved
	begin := time.Now()
	loan.Read(done, limit)
	read := time.Since(begin)
	d.Start(script("other"), 2*limit, func(_ []string, err error) { other <- err })
	if err := <-late; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) < limit {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	if read >= limit {
		t.Errorf("the caller read for %v", read)
	}
	if err := <-other; err == nil || errors.Is(err, node.ErrUnsent) {
		t.Errorf("the request behind it: %v", err)
	}
	eventually(t, "the silent connection is still used", c.gone.Load)
	rested(t, d) // by another connection
	if a, _ := ask(t, d, script("next"), long); a.err != nil || a.reply[0] != "next" {
		t.Errorf("the next one: %q, %v", a.reply, a.err)
	}
}

// TestErrorsOfAServerReachTheCallerThatReads has a real server forget a script, be
// full, and be busy.
func TestErrorsOfAServerReachTheCallerThatReads(t *testing.T) {
	s := servertest.Redis(t, 1, "--lua-time-limit", "50")[0]
	d := driverOf(t, s.URL())
	set := redis.Call{Script: redis.NewScript("set", "return redis.call('SET', KEYS[1], ARGV[1])"), Keys: []string{"key"}, Args: []string{"x"}}
	code := func(want string) {
		t.Helper()
		a, _ := ask(t, d, set, long)
		var server *redis.ServerError
		if want == "" && a.err != nil || want != "" && (!errors.As(a.err, &server) || server.Code != want) {
			t.Errorf("got %q, %v; want the error %q", a.reply, a.err, want)
		}
	}
	rested(t, d)
	code("")
	s.Do("SCRIPT", "FLUSH")
	rested(t, d)
	code("")
	s.Do("CONFIG", "SET", "maxmemory", "1")
	rested(t, d)
	code("OOM")
	s.Do("CONFIG", "SET", "maxmemory", "0")
	go s.Try("EVAL", "while true do end", "0")
	eventually(t, "the server is not busy", func() bool {
		_, err := s.Try("GET", "x")
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	eventually(t, "callers may not read", func() bool {
		d.do(t.Context(), "PING") // which is answered BUSY
		return readerOf(d.conn.Load()) == nobody
	})
	code("BUSY")
	s.Do("SCRIPT", "KILL")
	eventually(t, "the server is still busy", func() bool { _, err := s.Try("GET", "x"); return err == nil })
	rested(t, d)
	code("")
	if n := strings.Count(s.Do("CLIENT", "LIST"), "name=redlatch"); n != 1 {
		t.Errorf("there are %d connections, want the first one", n)
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

// TestConnectionThatEndsWhileNobodyReadsIsGone has a server hang up between two
// requests. So no request is lost on the connection.
func TestConnectionThatEndsWhileNobodyReadsIsGone(t *testing.T) {
	s := servertest.Redis(t, 1)[0]
	d := driverOf(t, s.URL())
	c := rested(t, d)
	s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	eventually(t, "nobody has noticed that the server hung up", c.gone.Load)
	if _, err := d.do(t.Context(), "PING"); err != nil {
		t.Error(err)
	}
}

// TestConnectionThatEndsBehindAReplyIsGone has the server hang up after the reply
// that a caller reads.
func TestConnectionThatEndsBehindAReplyIsGone(t *testing.T) {
	var all, ended atomic.Int32
	s := newServer(t, func(command []string) string {
		if command[len(command)-1] == "last" {
			return "+last\r\nhang up"
		}
		return ":1\r\n"
	})
	for range 50 {
		d := s.driver(t)
		c := rested(t, d)
		if a, _ := ask(t, d, script("last"), long); a.err == nil && a.reply[0] == "last" {
			ended.Add(1)
		}
		all.Add(1)
		eventually(t, "nobody has noticed that the server hung up", c.gone.Load)
	}
	if ended.Load() != all.Load() {
		t.Errorf("%d of %d callers have their replies", ended.Load(), all.Load())
	}
}

// TestWhatWasNotAskedForIsNoReply has a server send something by itself while
// nobody reads. The next caller must not take it for its reply.
func TestWhatWasNotAskedForIsNoReply(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	s := &server{listener: l, answer: func(command []string) string { return "+" + command[len(command)-1] + "\r\n" }}
	d := s.driver(t)
	sent := make(chan bool)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
			go func() {
				<-sent
				c.Write([]byte("+granted\r\n"))
				sent <- true
			}()
		}
	}()
	c := rested(t, d)
	sent <- true
	<-sent
	eventually(t, "it did not arrive", func() bool { return c.gone.Load() || c.quiet.unread() })
	if loan := d.Lend(); loan != nil {
		t.Fatal("a caller may read what was not asked for")
	}
	eventually(t, "the connection is still used", c.gone.Load)
	rested(t, d)
	if a, _ := ask(t, d, script("mine"), long); a.err != nil || a.reply[0] != "mine" {
		t.Errorf("got %q, %v", a.reply, a.err)
	}
}

// TestCloseEndsTheWaitOfACaller waits for longer than a caller does.
func TestCloseEndsTheWaitOfACaller(t *testing.T) {
	d := driverOf(t, servertest.Redis(t, 1)[0].URL())
	c := rested(t, d)
	waits, ended := make(chan bool, 1), make(chan bool, 1)
	if d.Lend() == nil {
		t.Fatal("the caller may not read")
	}
	go func() {
		waits <- true
		_, came := c.quiet.await(long)
		ended <- came
	}()
	<-waits
	time.Sleep(20 * time.Millisecond)
	start := time.Now()
	d.Close()
	if <-ended; time.Since(start) > long/2 {
		t.Errorf("it waited for another %v", time.Since(start))
	}
	done := make(chan struct{}, 1)
	c.Read(done, long) // it returns, and the connection is closed
	if d.Lend() != nil {
		t.Error("a caller may read what is closed")
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
		done, errs := make(chan struct{}, 1), make(chan error, 1)
		d.Start(script("never"), long, func(_ []string, err error) { errs <- err; done <- struct{}{} })
		loan.Read(done, long)
		if err := <-errs; !errors.Is(err, node.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
}

// TestSignalsDoNotProlongAWait has signals interrupt the wait again and again.
func TestSignalsDoNotProlongAWait(t *testing.T) {
	d := driverOf(t, servertest.Redis(t, 1)[0].URL())
	c := rested(t, d)
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR2)
	defer signal.Stop(got)
	stop := make(chan bool)
	var all sync.WaitGroup
	thread := make(chan int, 1)
	all.Go(func() {
		id := <-thread
		for end := time.Now().Add(long / 4); time.Now().Before(end); time.Sleep(time.Millisecond) {
			select {
			case <-stop:
				return
			default:
				syscall.Tgkill(os.Getpid(), id, syscall.SIGUSR2)
			}
		}
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread <- syscall.Gettid()
	const limit = 200 * time.Millisecond
	start := time.Now()
	_, came := c.quiet.await(limit)
	took := time.Since(start)
	close(stop)
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
		a, err := redis.ParseAddress(s.URL())
		must(t, err)
		d := &driver{address: a}
		d.WillLend()
		defer d.Close()
		rested(t, d)
		switch i % 3 {
		case 0:
			ask(t, d, script("x"), long)
		case 1:
			go d.Close()
			if loan := d.Lend(); loan != nil {
				done := make(chan struct{}, 1)
				d.Start(script("x"), long, func([]string, error) { done <- struct{}{} })
				loan.Read(done, long)
			}
		case 2:
			s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			eventually(t, "it is not gone", d.conn.Load().gone.Load)
		}
	}
	for i := range 9 {
		round(i)
	}
	var files, goroutines int
	settled := func() bool { // a goroutine may be about to end
		files, goroutines = count(t, "/proc/self/fd"), runtime.NumGoroutine()
		time.Sleep(50 * time.Millisecond)
		return files == count(t, "/proc/self/fd") && goroutines == runtime.NumGoroutine()
	}
	eventually(t, "it does not settle", settled)
	before, running, threads := files, goroutines, count(t, "/proc/self/task")
	for i := range 60 {
		round(i)
	}
	eventually(t, "descriptors are left", func() bool { return count(t, "/proc/self/fd") <= before })
	eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= running })
	if now := count(t, "/proc/self/task"); now > threads+8 {
		t.Errorf("there were %d threads, and are %d", threads, now)
	}
}
