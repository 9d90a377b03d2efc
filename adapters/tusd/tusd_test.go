//go:build unix

package redlatchtusd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/redlatch/redlatch"
	redlatchtusd "github.com/redlatch/redlatch/adapters/tusd"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

const patience = 30 * time.Second

var must = check.Must

// receive returns what a channel has.
func receive[T any](t testing.TB, what string, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
	}
	return got
}

// server is a tusd server in a process of its own.
type server struct {
	*processes.Process
	url string
}

// start starts a server whose locks are on the given servers.
func start(t testing.TB, name, dir string, nodes []*servertest.Server, args ...string) server {
	t.Helper()
	p := processes.Start(t, name, nil, append([]string{"-dir", dir, "-nodes", strings.Join(servertest.Addresses(nodes), ",")}, args...)...)
	_, url, _ := strings.Cut(p.Line("serving http"), "serving ")
	return server{p, url}
}

// send sends a request, and returns the status and the header of the answer; 0 if
// there is none.
func send(ctx context.Context, method, url string, header map[string]string, body io.Reader) (int, http.Header) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return 0, nil
	}
	req.Header.Set("Tus-Resumable", "1.0.0")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header
}

// create creates an upload and returns its id.
func (s server) create(t testing.TB, size int) string {
	t.Helper()
	status, header := send(t.Context(), "POST", s.url, map[string]string{"Upload-Length": strconv.Itoa(size)}, nil)
	if status != http.StatusCreated {
		t.Fatalf("POST: %d", status)
	}
	return filepath.Base(header.Get("Location"))
}

// patch writes to an upload.
func (s server) patch(ctx context.Context, id string, offset int, body io.Reader) (status int) {
	status, _ = send(ctx, "PATCH", s.url+id, map[string]string{"Content-Type": "application/offset+octet-stream", "Upload-Offset": strconv.Itoa(offset)}, body)
	return status
}

// head returns how much of an upload is there.
func (s server) head(ctx context.Context, id string) (status, offset int) {
	status, header := send(ctx, "HEAD", s.url+id, nil, nil)
	offset, _ = strconv.Atoi(header.Get("Upload-Offset"))
	return status, offset
}

// hang begins to write hello to a new upload, and does not go on. It returns when
// hello is stored, with what the status is sent to in the end.
func (s server) hang(t testing.TB, dir string) (id string, ended chan int) {
	t.Helper()
	id = s.create(t, len("hello world"))
	body, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	ended = make(chan int, 1)
	go func() { ended <- s.patch(t.Context(), id, 0, body) }()
	w.Write([]byte("hello"))
	poll.Until(t, "hello is stored", func() bool { return stored(dir, id) == "hello" })
	return id, ended
}

func stored(dir, id string) string {
	text, _ := os.ReadFile(filepath.Join(dir, id))
	return string(text)
}

// finish has a server write the rest of the upload, and checks the whole.
func (s server) finish(t testing.TB, dir, id string) {
	t.Helper()
	if status, offset := s.head(t.Context(), id); status != http.StatusOK || offset != len("hello") {
		t.Fatalf("HEAD: %d, offset %d", status, offset)
	}
	if status := s.patch(t.Context(), id, len("hello"), strings.NewReader(" world")); status != http.StatusNoContent {
		t.Fatalf("PATCH: %d", status)
	}
	if got := stored(dir, id); got != "hello world" {
		t.Errorf("the upload is %q", got)
	}
}

// TestRequestOnAnotherServerStopsTheOneThatHangs has a lock that would be held
// for ever.
func TestRequestOnAnotherServerStopsTheOneThatHangs(t *testing.T) {
	t.Parallel()
	nodes, _ := processes.Servers(t, 3)
	dir := t.TempDir()
	a, b := start(t, "a", dir, nodes), start(t, "b", dir, nodes)
	id, ended := a.hang(t, dir)
	b.finish(t, dir, id)
	if status := receive(t, "the request that hangs ends", ended); status/100 == 2 {
		t.Errorf("the request that was stopped returns %d", status)
	}
	for _, s := range []server{a, b} {
		if strings.Contains(s.Said(), "two write") {
			exclusion.Never(t, "two wrote at the same time")
		}
	}
}

// TestUploadOfAKilledServerGoesOnOnAnother kills a server while it writes.
func TestUploadOfAKilledServerGoesOnOnAnother(t *testing.T) {
	t.Parallel()
	nodes, _ := processes.Servers(t, 3)
	dir := t.TempDir()
	a, b := start(t, "a", dir, nodes), start(t, "b", dir, nodes)
	id, _ := a.hang(t, dir)
	a.Kill()
	b.finish(t, dir, id)
}

// TestUploadWithoutTheLockIsWrittenByTwo shows that the tests here can fail.
func TestUploadWithoutTheLockIsWrittenByTwo(t *testing.T) {
	t.Parallel()
	servertest.Need(t)
	dir := t.TempDir()
	a, b := start(t, "a", dir, nil), start(t, "b", dir, nil)
	id, _ := a.hang(t, dir)
	if status := b.patch(t.Context(), id, len("hello"), strings.NewReader(" world")); status != http.StatusInternalServerError {
		t.Errorf("PATCH: %d", status)
	}
	b.Line("two write at the same time")
}

// TestClientsOfTwoServersWriteAnUploadTogether has clients that each write what
// is missing, again and again.
func TestClientsOfTwoServersWriteAnUploadTogether(t *testing.T) {
	t.Parallel()
	nodes, _ := processes.Servers(t, 3)
	dir := t.TempDir()
	servers := []server{start(t, "a", dir, nodes), start(t, "b", dir, nodes)}
	const chunk, chunks = 100, 30
	var whole bytes.Buffer
	for i := range chunks {
		fmt.Fprintf(&whole, "%*d", chunk, i)
	}
	id := servers[0].create(t, whole.Len())
	var clients sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for i := range 4 {
		clients.Go(func() {
			for n := i; ctx.Err() == nil; n++ { // another server each time
				_, offset := servers[n%2].head(ctx, id)
				if offset == whole.Len() {
					return
				}
				next := whole.Bytes()[offset:min(offset+chunk, whole.Len())]
				servers[n%2].patch(ctx, id, offset, bytes.NewReader(next)) // 409 if another was faster
			}
		})
	}
	clients.Wait()
	if got := stored(dir, id); got != whole.String() {
		t.Errorf("of %d bytes %d are stored, and not all are right", whole.Len(), len(got))
	}
	for _, s := range servers {
		if strings.Contains(s.Said(), "two write") {
			exclusion.Never(t, "two wrote at the same time")
		}
	}
}

// newLock returns a lock of an upload.
func newLock(t testing.TB, locks *redlatch.Client, opts redlatchtusd.Options) handler.Lock {
	t.Helper()
	locker, err := redlatchtusd.New(locks, &opts)
	must(t, err)
	l, err := locker.NewLock("upload")
	must(t, err)
	return l
}

func TestHolderIsAskedToUnlockAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	_, locks := processes.Servers(t, 3)
	holder, other := newLock(t, locks, redlatchtusd.Options{}), newLock(t, locks, redlatchtusd.Options{})
	asked := make(chan struct{})
	must(t, holder.Lock(t.Context(), func() { close(asked) }))
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var timeout handler.Error
	if err := other.Lock(short, func() {}); !errors.As(err, &timeout) || timeout.ErrorCode != handler.ErrLockTimeout.ErrorCode {
		t.Errorf("at the end of the context the error is %v", err)
	}
	got := make(chan error, 1)
	go func() {
		got <- other.Lock(t.Context(), func() { t.Error("nobody waits, and the holder is asked to unlock") })
	}()
	receive(t, "the holder is asked to unlock", asked)
	must(t, holder.Unlock())
	must(t, receive(t, "the other has the lock", got))
	time.Sleep(500 * time.Millisecond) // for the nodes to be asked twice
	must(t, other.Unlock())
	if err := other.Unlock(); err == nil || !strings.Contains(err.Error(), "upload") {
		t.Errorf("unlocking what is not locked: %v", err)
	}
}

// TestRequestThatLosesItsLockIsStopped takes the lock away on the servers.
func TestRequestThatLosesItsLockIsStopped(t *testing.T) {
	t.Parallel()
	servers, locks := processes.Servers(t, 3)
	l := newLock(t, locks, redlatchtusd.Options{Prefix: "p/", TTL: 2 * time.Second})
	stopped := make(chan struct{})
	must(t, l.Lock(t.Context(), func() { close(stopped) }))
	for _, s := range servers {
		s.Do("DEL", "p/upload")
	}
	receive(t, "the request is stopped", stopped)
	if err := l.Unlock(); !errors.Is(err, redlatch.ErrLost) {
		t.Errorf("unlocking a lock that is lost: %v", err)
	}
}

func TestErrorsOfServersAreReturned(t *testing.T) {
	t.Parallel()
	servers, locks := processes.Servers(t, 3)
	l := newLock(t, locks, redlatchtusd.Options{})
	for _, s := range servers {
		s.Kill()
	}
	if err := l.Lock(context.Background(), func() {}); !errors.Is(err, redlatch.ErrNoQuorum) {
		t.Errorf("without servers: %v", err)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	_, err1 := redlatchtusd.New(nil, nil)
	_, err2 := redlatchtusd.New(&redlatch.Client{}, &redlatchtusd.Options{TTL: -1})
	locker, err := redlatchtusd.New(&redlatch.Client{}, nil)
	must(t, err)
	_, err3 := locker.NewLock("")
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, redlatch.ErrConfig) {
			t.Errorf("the error is %v", err)
		}
	}
}
