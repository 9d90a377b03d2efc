package fence_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
)

var must = check.Must

// site is a server behind the middleware, and the number of requests that got
// through.
type site struct {
	*httptest.Server
	through int
	token   node.Token // in the context of the last one
}

func newSite(t testing.TB, guard fence.Guard, opts fence.MiddlewareOptions) *site {
	t.Helper()
	wrap, err := fence.Middleware(guard, &opts)
	must(t, err)
	s := &site{}
	s.Server = httptest.NewServer(wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.through++
		s.token, _ = fence.TokenFrom(r.Context())
	})))
	t.Cleanup(s.Close)
	return s
}

// ask sends a request with the given values of the header, and returns the
// response with its body read.
func (s *site) ask(t testing.TB, method, path string, tokens ...string) (*http.Response, map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, nil)
	must(t, err)
	for _, token := range tokens {
		req.Header.Add(fence.TokenHeader, token)
	}
	resp, err := s.Client().Do(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	problem := map[string]any{}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &problem); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	return resp, problem
}

func newGate(t testing.TB) *fence.Gate {
	t.Helper()
	gate, err := fence.NewGate(nil)
	must(t, err)
	return gate
}

func TestRequestsGetTheAnswerTheirTokenDeserves(t *testing.T) {
	gate := newGate(t)
	s := newSite(t, gate, fence.MiddlewareOptions{})
	must(t, gate.Check(context.Background(), "/orders/42", 1763000000123456))
	const good, stale = "1763000000123456", "1763000000123455"
	for _, c := range []struct {
		method string
		tokens []string
		status int
	}{
		{"PUT", []string{good}, 200}, {"POST", []string{good}, 200}, {"PATCH", []string{good}, 200}, {"DELETE", []string{good}, 200},
		{"PUT", []string{"00001763000000123456"}, 200},
		{"PUT", []string{stale}, 409}, {"POST", []string{stale}, 409}, {"DELETE", []string{"1"}, 409},
		{"PUT", nil, 428}, {"POST", nil, 428}, {"DELETE", nil, 428}, {"FROBNICATE", nil, 428},
		{"GET", nil, 200}, {"HEAD", nil, 200}, {"OPTIONS", nil, 200},
		// With a token, a read claims as well.
		{"GET", []string{good}, 200}, {"GET", []string{stale}, 409}, {"GET", []string{"x"}, 400},
		{"PUT", []string{""}, 400}, {"PUT", []string{"0"}, 400}, {"PUT", []string{"-1"}, 400}, {"PUT", []string{"+1"}, 400},
		{"PUT", []string{"1e16"}, 400}, {"PUT", []string{"1.0"}, 400}, {"PUT", []string{"0x10"}, 400}, {"PUT", []string{"1_0"}, 400},
		{"PUT", []string{"9007199254740992"}, 400}, {"PUT", []string{"18446744073709551617"}, 400}, {"PUT", []string{"١"}, 400},
		{"PUT", []string{strings.Repeat("0", 21) + "7"}, 400}, {"PUT", []string{good + ", " + good}, 400}, {"PUT", []string{good, good}, 400},
		{"PUT", []string{good + " " + good}, 400}, {"PUT", []string{`"` + good + `"`}, 400},
	} {
		before := s.through
		resp, problem := s.ask(t, c.method, "/orders/42", c.tokens...)
		if resp.StatusCode != c.status {
			t.Errorf("%s with %q: %s, want %d", c.method, c.tokens, resp.Status, c.status)
		}
		if (s.through > before) != (c.status == 200) {
			t.Errorf("%s with %q and %d reached the handler: %t", c.method, c.tokens, c.status, s.through > before)
		}
		if c.status == 200 {
			continue
		}
		if media := resp.Header.Get("Content-Type"); media != "application/problem+json" {
			t.Errorf("%d comes as %s", c.status, media)
		}
		for _, field := range []string{"type", "title", "detail"} {
			if text, _ := problem[field].(string); text == "" {
				t.Errorf("the problem of %d has no %s: %v", c.status, field, problem)
			}
		}
		if status, _ := problem["status"].(float64); int(status) != c.status {
			t.Errorf("the problem of %d has status %v", c.status, problem["status"])
		}
	}
	if got := gate.Highest("/orders/42"); got != 1763000000123456 {
		t.Errorf("the highest token is %d", got)
	}
}

// TestConflictsOfOthersAreLeftAlone answers as another server might.
func TestConflictsOfOthersAreLeftAlone(t *testing.T) {
	const ours = `"type":"https://pkg.go.dev/github.com/redlatch/redlatch/fence#StaleError"`
	for _, c := range []struct {
		status      int
		media, body string
	}{
		{409, "text/plain", "conflict"},
		{409, "application/problem+json", `{"type":"about:blank","token":"1","highest":"2"}`},
		{409, "application/problem+json", `{` + ours + `,"token":1,"highest":2}`},
		{409, "application/problem+json", `{` + ours + `,"token":"1"}`},
		{409, "application/problem+json", `{` + ours + `,"token":"1","highest":"2`},
		{409, "application/json", `{` + ours + `,"token":"1","highest":"2"}`},
		{428, "application/problem+json", `{` + ours + `,"token":"1","highest":"2"}`},
		{409, "application/problem+json", strings.Repeat(" ", 1<<20)},
		{200, "application/problem+json", `{` + ours + `,"token":"1","highest":"2"}`},
	} {
		resp := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.media}}, Body: io.NopCloser(strings.NewReader(c.body))}
		if err := fence.ResponseError(resp); err != nil {
			t.Errorf("%d %s %.80s: %v", c.status, c.media, c.body, err)
		}
		if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != c.body {
			t.Errorf("%d %s %.80s: afterwards the body is %.80s, %v", c.status, c.media, c.body, rest, err)
		}
	}
}

func TestTransportSendsNoBadToken(t *testing.T) {
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		t.Error("something was sent")
		return nil, io.ErrUnexpectedEOF
	})
	for _, token := range []node.Token{0, node.MaxToken + 1} {
		body := &closing{}
		req, _ := http.NewRequestWithContext(fence.WithToken(context.Background(), token), "PUT", "http://example.com/", body)
		if _, err := (&fence.Transport{Base: base}).RoundTrip(req); !errors.Is(err, node.ErrConfig) {
			t.Errorf("token %d: %v", token, err)
		}
		if !body.closed {
			t.Errorf("token %d: the body was left open", token)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type closing struct{ closed bool }

func (c *closing) Read([]byte) (int, error) { return 0, io.EOF }
func (c *closing) Close() error             { c.closed = true; return nil }

type guardFunc func(ctx context.Context, resource string, token node.Token) error

func (f guardFunc) Check(ctx context.Context, resource string, token node.Token) error {
	return f(ctx, resource, token)
}

func TestAGuardThatFailsLetsNobodyIn(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, guardFunc(func(context.Context, string, node.Token) error {
		return errors.New("dial db.internal: secret")
	}), fence.MiddlewareOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	resp, problem := s.ask(t, "PUT", "/orders/42", "7")
	if resp.StatusCode != http.StatusServiceUnavailable || s.through != 0 {
		t.Errorf("%s, %d got through", resp.Status, s.through)
	}
	if text, _ := json.Marshal(problem); bytes.Contains(text, []byte("secret")) {
		t.Errorf("the client is told %s", text)
	}
	if !strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "/orders/42") {
		t.Errorf("the log says %q", log.String())
	}
}

func TestResourcesOutOfBoundsAreBadRequests(t *testing.T) {
	s := newSite(t, newGate(t), fence.MiddlewareOptions{})
	for _, path := range []string{"/" + strings.Repeat("x", fence.MaxResourceLen), "/a%0Ab", "/%FF"} {
		if resp, _ := s.ask(t, "PUT", path, "7"); resp.StatusCode != http.StatusBadRequest || s.through != 0 {
			t.Errorf("%.20q: %s, %d got through", path, resp.Status, s.through)
		}
	}
}

func TestMiddlewareAsksItsOptions(t *testing.T) {
	gate := newGate(t)
	s := newSite(t, gate, fence.MiddlewareOptions{
		Resource: func(r *http.Request) string { return "all" },
		Requires: func(r *http.Request) bool { return r.URL.Path == "/strict" },
	})
	if resp, _ := s.ask(t, "GET", "/strict"); resp.StatusCode != http.StatusPreconditionRequired {
		t.Errorf("a read that requires a token: %s", resp.Status)
	}
	if resp, _ := s.ask(t, "PUT", "/lax"); resp.StatusCode != http.StatusOK {
		t.Errorf("a write that requires none: %s", resp.Status)
	}
	if resp, _ := s.ask(t, "PUT", "/lax", "7"); resp.StatusCode != http.StatusOK || s.token != 7 || gate.Highest("all") != 7 {
		t.Errorf("%s, token %d, highest %d", resp.Status, s.token, gate.Highest("all"))
	}
	if _, err := fence.Middleware(nil, nil); !errors.Is(err, node.ErrConfig) {
		t.Errorf("no guard: %v", err)
	}
}

// TestSerialRequestsWriteInTheOrderOfTheirTokens stops a handler after its
// request was admitted. Without Serial it writes after the newer one.
func TestSerialRequestsWriteInTheOrderOfTheirTokens(t *testing.T) {
	for serial, want := range map[bool]string{true: "[other 5 6 8]", false: "[6 7 other 5 8]"} {
		synctest.Test(t, func(t *testing.T) {
			wrap, err := fence.Middleware(newGate(t), &fence.MiddlewareOptions{Serial: serial})
			must(t, err)
			resume := make(chan struct{})
			var written []string
			handler := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(fence.TokenHeader) == "5" {
					<-resume
				}
				name := r.Header.Get(fence.TokenHeader)
				if r.URL.Path == "/other" {
					name = "other"
				}
				written = append(written, name)
			}))
			// send returns when the request was handled or has to wait.
			send := func(ctx context.Context, path, token string) *httptest.ResponseRecorder {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(ctx, "PUT", path, nil)
				r.Header.Set(fence.TokenHeader, token)
				go handler.ServeHTTP(w, r)
				synctest.Wait()
				return w
			}
			ctx := context.Background()
			send(ctx, "/r", "5")
			send(ctx, "/r", "6")
			impatient, cancel := context.WithCancel(ctx)
			gone := send(impatient, "/r", "7")
			send(ctx, "/other", "4")
			cancel()
			synctest.Wait()
			close(resume)
			synctest.Wait()
			// A request that is refused lets the next one through.
			if stale := send(ctx, "/r", "1"); stale.Code != http.StatusConflict {
				t.Errorf("the stale one got %d", stale.Code)
			}
			send(ctx, "/r", "8")
			if got := fmt.Sprint(written); got != want {
				t.Errorf("serial %t: written %s, want %s", serial, got, want)
			}
			if serial && gone.Code != http.StatusServiceUnavailable {
				t.Errorf("who gave up waiting got %d", gone.Code)
			}
		})
	}
}

// TestGuardWithoutReadersTakesThemForWriters is the safe side: a guard of the caller's
// own that knows Check alone.
func TestGuardWithoutReadersTakesThemForWriters(t *testing.T) {
	s := newSite(t, guardFunc(newGate(t).Check), fence.MiddlewareOptions{})
	for _, c := range []struct {
		token  string
		status int
	}{{"6", 200}, {"5", 409}} {
		req, err := http.NewRequest("GET", s.URL, nil)
		must(t, err)
		req.Header = http.Header{fence.TokenHeader: {c.token}, fence.ReaderHeader: {"true"}}
		resp, err := s.Client().Do(req)
		must(t, err)
		if resp.Body.Close(); resp.StatusCode != c.status {
			t.Errorf("reader %s: %s, want %d", c.token, resp.Status, c.status)
		}
	}
}

func TestReadersRequestsGetTheAnswerTheyDeserve(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		method  string
		token   string
		readers []string
		status  int
	}{
		{"GET", "8", []string{"true"}, 200}, {"HEAD", "8", []string{"true"}, 200}, {"OPTIONS", "8", []string{"true"}, 200},
		{"GET", "5", []string{"true"}, 200}, {"GET", "4", []string{"true"}, 409},
		{"GET", "8", nil, 409}, {"PUT", "8", nil, 409}, {"PUT", "10", nil, 200},
		// A reader does not write.
		{"PUT", "10", []string{"true"}, 400}, {"POST", "10", []string{"true"}, 400}, {"DELETE", "10", []string{"true"}, 400},
		{"GET", "8", []string{""}, 400}, {"GET", "8", []string{"false"}, 400}, {"GET", "8", []string{"1"}, 400}, {"GET", "8", []string{"True"}, 400},
		{"GET", "8", []string{"true", "true"}, 400}, {"GET", "x", []string{"true"}, 400}, {"GET", "", []string{"yes"}, 400},
		{"GET", "", []string{"true"}, 428}, {"GET", "", nil, 200},
	} {
		gate := newGate(t)
		s := newSite(t, gate, fence.MiddlewareOptions{})
		must(t, errors.Join(gate.Check(ctx, "/doc", 5), gate.CheckRead(ctx, "/doc", 9)))
		req, err := http.NewRequest(c.method, s.URL+"/doc", nil)
		must(t, err)
		if c.token != "" {
			req.Header.Set(fence.TokenHeader, c.token)
		}
		req.Header[fence.ReaderHeader] = c.readers
		resp, err := s.Client().Do(req)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != c.status || s.through > 0 != (c.status == 200) {
			t.Errorf("%s with %q, readers %q: %s, want %d; %d got through", c.method, c.token, c.readers, resp.Status, c.status, s.through)
		}
	}
}

func TestTransportSendsTheTokenOnceAndSaysWhose(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		ctx       context.Context
		transport fence.Transport
		byHand    string
		want      string
	}{
		"its own, of a reader":            {ctx, fence.Transport{Token: 5, Reader: true}, "", "[5] [true]"},
		"its own, of a writer":            {ctx, fence.Transport{Token: 5}, "", "[5] []"},
		"the context's, of a reader":      {fence.WithReadToken(ctx, 6), fence.Transport{Token: 5}, "", "[6] [true]"},
		"the context's, of a writer":      {fence.WithToken(ctx, 6), fence.Transport{Token: 5, Reader: true}, "", "[6] []"},
		"by hand":                         {fence.WithToken(ctx, 6), fence.Transport{Token: 5}, "9", "[9] []"},
		"the largest":                     {ctx, fence.Transport{Token: node.MaxToken}, "", "[9007199254740991] []"},
		"no token":                        {ctx, fence.Transport{Reader: true}, "", "[] []"},
		"a reader's that became writer's": {fence.WithToken(fence.WithReadToken(ctx, 6), 7), fence.Transport{}, "", "[7] []"},
	} {
		var got string
		c.transport.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
			got = fmt.Sprint(r.Header.Values(fence.TokenHeader), r.Header.Values(fence.ReaderHeader))
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		req, err := http.NewRequestWithContext(c.ctx, "GET", "http://example.com/", nil)
		must(t, err)
		if c.byHand != "" {
			req.Header.Set(fence.TokenHeader, c.byHand)
		}
		before := len(req.Header)
		if _, err := c.transport.RoundTrip(req); err != nil || got != c.want {
			t.Errorf("%s: sent %s, %v, want %s", name, got, err, c.want)
		}
		if len(req.Header) != before {
			t.Errorf("%s: the caller's request was changed", name)
		}
	}
}
