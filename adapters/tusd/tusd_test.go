//go:build unix

package redlatchtusd_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/redlatch/redlatch"
	redlatchtusd "github.com/redlatch/redlatch/adapters/tusd"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/memory"
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

// server is a tusd server.
type server struct{ url string }

// start starts a server with locks of its own client.
func start(t testing.TB, uploads filestore.FileStore, nodes []*servertest.Server) server {
	t.Helper()
	composer := handler.NewStoreComposer()
	uploads.UseIn(composer)
	locker, err := redlatchtusd.New(processes.Client(t, nodes), nil)
	must(t, err)
	locker.UseIn(composer)
	serve, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer})
	must(t, err)
	s := httptest.NewServer(http.StripPrefix("/files/", serve))
	t.Cleanup(s.Close)
	return server{s.URL + "/files/"}
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

// TestRequestOnAnotherServerStopsTheOneThatHangs has a lock that would be held
// for ever.
func TestRequestOnAnotherServerStopsTheOneThatHangs(t *testing.T) {
	t.Parallel()
	nodes, _ := processes.Servers(t, 3)
	uploads := filestore.New(t.TempDir())
	stored := func(id string) string {
		text, _ := os.ReadFile(filepath.Join(uploads.Path, id))
		return string(text)
	}
	a, b := start(t, uploads, nodes), start(t, uploads, nodes)
	id := a.create(t, len("hello world"))
	body, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	ended := make(chan int, 1)
	go func() { ended <- a.patch(t.Context(), id, 0, body) }()
	w.Write([]byte("hello"))
	poll.Until(t, "hello is stored", func() bool { return stored(id) == "hello" })
	if status, offset := b.head(t.Context(), id); status != http.StatusOK || offset != len("hello") {
		t.Fatalf("HEAD: %d, offset %d", status, offset)
	}
	if status := b.patch(t.Context(), id, len("hello"), strings.NewReader(" world")); status != http.StatusNoContent {
		t.Fatalf("PATCH: %d", status)
	}
	if status := receive(t, "the request that hangs ends", ended); status/100 == 2 {
		t.Errorf("the request that was stopped returns %d", status)
	}
	if got := stored(id); got != "hello world" {
		t.Errorf("the upload is %q", got)
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

func TestErrorThatIsNoTimeoutIsReturned(t *testing.T) {
	t.Parallel()
	locks, err := redlatch.New(memory.Nodes(1), nil)
	must(t, err)
	must(t, locks.Close())
	if err := newLock(t, locks, redlatchtusd.Options{}).Lock(t.Context(), nil); !errors.Is(err, redlatch.ErrClosed) || errors.Is(err, handler.ErrLockTimeout) {
		t.Errorf("the error is %v", err)
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
