package fence

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
)

// FuzzTokenHeaders sends requests with one header, or two, to a middleware.
func FuzzTokenHeaders(f *testing.F) {
	for _, text := range []string{"", "1", "0", "-1", "+1", "9007199254740991", "9007199254740992", "00000000000000000007", "000000000000000000007", "1, 2", " 1", "1e3", "\x00", "\xff", "١", strings.Repeat("9", 5000)} {
		f.Add(text, "2", false, "/data")
	}
	f.Add("3", "3", true, "/data")
	f.Add("3", "4", true, "/"+strings.Repeat("x", 300))
	f.Fuzz(func(t *testing.T, first, second string, twice bool, path string) {
		gate, err := NewGate(nil)
		check.Must(t, err)
		wrap, err := Middleware(gate, &MiddlewareOptions{Resource: func(*http.Request) string { return path }})
		check.Must(t, err)
		var seen node.Token
		handler := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen, _ = TokenFrom(r.Context()) }))
		send := func(values ...string) *http.Response {
			r := httptest.NewRequest(http.MethodPut, "/x", nil)
			r.Header[TokenHeader] = values
			w := httptest.NewRecorder()
			seen = 0
			handler.ServeHTTP(w, r)
			return w.Result()
		}
		values := []string{first}
		if twice {
			values = append(values, second)
		}
		resp := send(values...)
		token, bad := node.ParseToken(first)
		switch ok := !twice && bad == nil && checkResource(path) == nil; {
		case ok != (resp.StatusCode == http.StatusOK):
			t.Errorf("%q for %q got %d", values, path, resp.StatusCode)
		case ok:
			if seen != token {
				t.Errorf("%q arrived as %d", values, seen)
			}
		default:
			body, _ := io.ReadAll(resp.Body)
			var p problem
			if resp.StatusCode != http.StatusBadRequest || seen != 0 || json.Unmarshal(body, &p) != nil || p.Status != http.StatusBadRequest ||
				p.Detail == "" || len(body) > 2000 || !utf8.Valid(body) {
				t.Errorf("%q for %q got %d, %q", values, path, resp.StatusCode, body)
			}
		}
	})
}

// FuzzResponses has a server respond with anything.
func FuzzResponses(f *testing.F) {
	for _, p := range []problem{
		{Type: problemStale, Status: 409, Resource: "r", Token: "1", Highest: "2"},
		{Type: problemStale, Status: 409, Resource: "r", Token: "0", Highest: "9007199254740992"},
		{Type: problemMissing, Status: 428}, {Type: problemBad, Status: 400},
	} {
		body, err := json.Marshal(p)
		check.Must(f, err)
		f.Add(p.Status, problemMedia, body)
		f.Add(409, problemMedia+"; charset=utf-8", body)
	}
	f.Add(409, "text/plain", []byte("no"))
	f.Add(428, problemMedia, []byte("{"))
	f.Add(409, problemMedia, bytes.Repeat([]byte("["), 20<<10))
	f.Fuzz(func(t *testing.T, status int, media string, body []byte) {
		resp := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(bytes.NewReader(body))}
		err := ResponseError(resp)
		var stale *StaleError
		switch {
		case err == nil:
		case err == ErrNoToken:
			if status != http.StatusPreconditionRequired {
				t.Errorf("%d is read as a missing token", status)
			}
		case errors.As(err, &stale):
			if status != http.StatusConflict || checkToken(stale.Token) != nil || checkToken(stale.Highest) != nil {
				t.Errorf("%d with %q is read as %+v", status, body, stale)
			}
		default:
			t.Errorf("%d with %q is read as %v", status, body, err)
		}
		if rest, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(rest, body) {
			t.Errorf("of %d bytes %d are left to read, %v", len(body), len(rest), err)
		}
	})
}
