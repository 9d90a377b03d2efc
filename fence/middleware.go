package fence

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
)

// TokenHeader is the header that carries a token, once, in decimal digits.
const TokenHeader = "Redlatch-Token"

// ReaderHeader is the header that says, once and with the value true, that the
// token is a reader's.
const ReaderHeader = "Redlatch-Reader"

// MiddlewareOptions are the settings of a Middleware. The zero value works.
type MiddlewareOptions struct {
	// Resource names the resource that a request is about. Defaults to the
	// path of its URL.
	Resource func(*http.Request) string

	// Requires reports whether a request must have a token. Other requests are
	// checked as well if they have one: so a holder can claim a resource before
	// it reads. Defaults to all requests but GET, HEAD and OPTIONS.
	Requires func(*http.Request) bool

	// Serial admits requests with a token for one resource one at a time, and
	// checks each only after the one before it was handled. Then a request that
	// was admitted has been handled before one with a higher token is admitted.
	// This holds within this process. Defaults to false.
	Serial bool

	// Logger receives checks that failed for another reason than the token.
	// Defaults to silence.
	Logger *slog.Logger
}

// Middleware returns a function that puts a guard before a handler. A request
// whose token is not stale reaches the handler, with the token in its context
// (see TokenFrom). All others get an RFC 9457 problem: 409 with a stale token,
// 428 without one, 400 with a malformed one or an invalid resource name, 503 if
// the guard fails.
//
// A reader's request (see ReaderHeader) must be a GET, HEAD or OPTIONS, since
// readers do not write: other methods get 400. It is checked by CheckRead if the
// guard is a ReadGuard, and otherwise like a writer's, which is safe: readers
// then refuse each other. IsReader is true in the handler.
//
// The check comes before the handler and is not atomic with what the handler
// writes. A late request is refused. A handler that is stopped half way may
// still write late, unless Serial is set and all writers of the resource are in
// this process, or the handler passes the token on to its store.
func Middleware(guard Guard, opts *MiddlewareOptions) (func(http.Handler) http.Handler, error) {
	o := optional.Value(opts)
	if guard == nil {
		return nil, &node.ConfigError{Field: "guard", Value: nil, Bound: "a guard"}
	}
	if o.Resource == nil {
		o.Resource = func(r *http.Request) string { return r.URL.Path }
	}
	if o.Requires == nil {
		o.Requires = func(r *http.Request) bool { return !onlyReads(r) }
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	m := &middleware{MiddlewareOptions: o, guard: guard}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
	}, nil
}

// onlyReads reports whether a request's method changes nothing.
func onlyReads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

type middleware struct {
	MiddlewareOptions
	guard Guard
	turns turns
}

func (m *middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	values := r.Header.Values(TokenHeader)
	reads, err := parseReader(r)
	if err != nil {
		problemFor(err).write(w)
		return
	}
	if len(values) == 0 {
		if reads || m.Requires(r) {
			problemFor(ErrNoToken).write(w)
			return
		}
		next.ServeHTTP(w, r)
		return
	}
	token, err := parseHeader(values)
	if err != nil {
		problemFor(err).write(w)
		return
	}
	resource := m.Resource(r)
	ctx, check := WithToken(r.Context(), token), m.guard.Check
	if reads {
		ctx = WithReadToken(r.Context(), token)
		if guard, ok := m.guard.(ReadGuard); ok {
			check = guard.CheckRead
		}
	}
	done, err := m.admit(r.Context(), check, resource, token)
	if err != nil {
		p := problemFor(err)
		if p.Status == http.StatusServiceUnavailable {
			m.Logger.ErrorContext(r.Context(), "redlatch: token could not be checked", "resource", resource, "token", token.String(), "error", err)
		}
		p.write(w)
		return
	}
	defer done()
	next.ServeHTTP(w, r.WithContext(ctx))
}

// checkFunc is a guard's Check or CheckRead.
type checkFunc func(ctx context.Context, resource string, token node.Token) error

// admit checks the token; with Serial it waits for the requests before it.
func (m *middleware) admit(ctx context.Context, check checkFunc, resource string, token node.Token) (done func(), err error) {
	done = func() {}
	if m.Serial {
		if done, err = m.turns.take(ctx, resource); err != nil {
			return nil, err
		}
	}
	if err := check(ctx, resource, token); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// parseHeader accepts one value of digits alone. Two values are an error even
// if they are equal: it is unknown which of them was meant.
func parseHeader(values []string) (node.Token, error) {
	if len(values) != 1 {
		return 0, &node.ConfigError{Field: "header " + TokenHeader, Value: strings.Join(values, ", "), Bound: "there once"}
	}
	token, err := node.ParseToken(values[0])
	if err != nil {
		return 0, &node.ConfigError{Field: "header " + TokenHeader, Value: values[0], Bound: "a whole number between 1 and 9007199254740991, in digits"}
	}
	return token, nil
}

// parseReader reports whether the request is a reader's.
func parseReader(r *http.Request) (bool, error) {
	values := r.Header.Values(ReaderHeader)
	switch {
	case len(values) == 0:
		return false, nil
	case len(values) != 1 || values[0] != "true":
		return false, &node.ConfigError{Field: "header " + ReaderHeader, Value: strings.Join(values, ", "), Bound: "there once, and true"}
	case !onlyReads(r):
		return false, &node.ConfigError{Field: "method with the header " + ReaderHeader, Value: r.Method, Bound: "GET, HEAD or OPTIONS: a reader does not write"}
	}
	return true, nil
}
