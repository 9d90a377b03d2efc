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

// ask sends a request with the given values of the headers, and returns the response
// and what it says.
func (s *site) ask(t testing.TB, method, path string, tokens []string, readers ...string) (*http.Response, map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, nil)
	must(t, err)
	req.Header[fence.TokenHeader], req.Header[fence.ReaderHeader] = tokens, readers
	resp, err := s.Client().Do(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
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

// TestRequestsGetTheAnswerTheirTokenDeserves has a resource that a writer has claimed, and
// a later reader. What is no token is in FuzzTokenHeaders.
func TestRequestsGetTheAnswerTheirTokenDeserves(t *testing.T) {
	const before, writer, between, reader, after = "1763000000123455", "1763000000123456", "1763000000123457", "1763000000123458", "1763000000123459"
	for _, c := range []struct {
		methods string
		tokens  []string
		readers []string
		status  int
	}{
		{"PUT POST PATCH DELETE GET", []string{reader}, nil, 200}, {"PUT", []string{"0000" + reader}, nil, 200}, {"PUT", []string{after}, nil, 200},
		{"PUT POST GET", []string{between}, nil, 409}, {"DELETE", []string{"1"}, nil, 409},
		{"PUT POST DELETE FROBNICATE", nil, nil, 428}, {"GET HEAD OPTIONS", nil, nil, 200},
		{"GET", []string{"x"}, nil, 400}, {"PUT", []string{""}, nil, 400}, {"PUT", []string{"0x10"}, nil, 400}, {"PUT", []string{"1_0"}, nil, 400},
		{"PUT", []string{reader + ", " + reader}, nil, 400}, {"PUT", []string{reader, reader}, nil, 400}, {"PUT", []string{`"` + reader + `"`}, nil, 400},

		{"GET HEAD OPTIONS", []string{between}, []string{"true"}, 200}, {"GET", []string{writer}, []string{"true"}, 200},
		{"GET", []string{before}, []string{"true"}, 409}, {"GET", nil, []string{"true"}, 428},
		{"PUT POST DELETE", []string{after}, []string{"true"}, 400}, // a reader does not write
		{"GET", []string{between}, []string{""}, 400}, {"GET", []string{between}, []string{"false"}, 400}, {"GET", []string{between}, []string{"True"}, 400},
		{"GET", []string{between}, []string{"true", "true"}, 400}, {"GET", []string{"x"}, []string{"true"}, 400}, {"GET", nil, []string{"yes"}, 400},
	} {
		for method := range strings.FieldsSeq(c.methods) {
			what := fmt.Sprintf("%s with %q, readers %q", method, c.tokens, c.readers)
			gate := newGate(t)
			s := newSite(t, gate, fence.MiddlewareOptions{})
			must(t, errors.Join(gate.Check(t.Context(), "/doc", 1763000000123456), gate.CheckRead(t.Context(), "/doc", 1763000000123458)))
			resp, problem := s.ask(t, method, "/doc", c.tokens, c.readers...)
			if resp.StatusCode != c.status || s.through > 0 != (c.status == 200) {
				t.Errorf("%s: %s, want %d; %d got through", what, resp.Status, c.status, s.through)
			}
			if c.status == 200 {
				continue
			}
			if got := gate.Highest("/doc"); got != 1763000000123458 {
				t.Errorf("%s: the highest token is %d", what, got)
			}
			if media := resp.Header.Get("Content-Type"); media != "application/problem+json" {
				t.Errorf("%s: the problem comes as %s", what, media)
			}
			for _, field := range []string{"type", "title", "detail"} {
				if text, _ := problem[field].(string); text == "" {
					t.Errorf("%s: the problem has no %s: %v", what, field, problem)
				}
			}
			if status, _ := problem["status"].(float64); int(status) != c.status {
				t.Errorf("%s: the problem has status %v", what, problem["status"])
			}
		}
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
	resp, problem := s.ask(t, "PUT", "/orders/42", []string{"7"})
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
		if resp, _ := s.ask(t, "PUT", path, []string{"7"}); resp.StatusCode != http.StatusBadRequest || s.through != 0 {
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
	if resp, _ := s.ask(t, "GET", "/strict", nil); resp.StatusCode != http.StatusPreconditionRequired {
		t.Errorf("a read that requires a token: %s", resp.Status)
	}
	if resp, _ := s.ask(t, "PUT", "/lax", nil); resp.StatusCode != http.StatusOK {
		t.Errorf("a write that requires none: %s", resp.Status)
	}
	if resp, _ := s.ask(t, "PUT", "/lax", []string{"7"}); resp.StatusCode != http.StatusOK || s.token != 7 || gate.Highest("all") != 7 {
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
		if resp, _ := s.ask(t, "GET", "/doc", []string{c.token}, "true"); resp.StatusCode != c.status {
			t.Errorf("reader %s: %s, want %d", c.token, resp.Status, c.status)
		}
	}
}

// TestTransportSendsTheTokenOnceAndSaysWhose has a token that cannot be sent where
// nothing is wanted.
func TestTransportSendsTheTokenOnceAndSaysWhose(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		ctx       context.Context
		transport fence.Transport
		byHand    string
		want      string
	}{
		"its own, of a reader":            {ctx, fence.Transport{Token: 5, Reader: true}, "", "[00000000000000000005] [true]"},
		"its own, of a writer":            {ctx, fence.Transport{Token: 5}, "", "[00000000000000000005] []"},
		"the context's, of a reader":      {fence.WithReadToken(ctx, 6), fence.Transport{Token: 5}, "", "[00000000000000000006] [true]"},
		"the context's, of a writer":      {fence.WithToken(ctx, 6), fence.Transport{Token: 5, Reader: true}, "", "[00000000000000000006] []"},
		"by hand":                         {fence.WithToken(ctx, 6), fence.Transport{Token: 5}, "9", "[9] []"},
		"the largest":                     {ctx, fence.Transport{Token: node.MaxToken}, "", "[00009007199254740991] []"},
		"no token":                        {ctx, fence.Transport{Reader: true}, "", "[] []"},
		"none, by mistake":                {fence.WithToken(ctx, 0), fence.Transport{Token: 5}, "", ""},
		"too large":                       {fence.WithToken(ctx, node.MaxToken+1), fence.Transport{}, "", ""},
		"a reader's that became writer's": {fence.WithToken(fence.WithReadToken(ctx, 6), 7), fence.Transport{}, "", "[00000000000000000007] []"},
	} {
		var got string
		c.transport.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
			got = fmt.Sprint(r.Header.Values(fence.TokenHeader), r.Header.Values(fence.ReaderHeader))
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		body := &closing{}
		req, err := http.NewRequestWithContext(c.ctx, "PUT", "http://example.com/", body)
		must(t, err)
		if c.byHand != "" {
			req.Header.Set(fence.TokenHeader, c.byHand)
		}
		before := len(req.Header)
		_, err = c.transport.RoundTrip(req)
		if refused := c.want == ""; got != c.want || refused != errors.Is(err, node.ErrConfig) || refused != body.closed || !refused && err != nil {
			t.Errorf("%s: sent %s, %v, want %q; the body is closed %t", name, got, err, c.want, body.closed)
		}
		if len(req.Header) != before {
			t.Errorf("%s: the caller's request was changed", name)
		}
	}
}
