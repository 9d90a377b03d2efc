package fence

import (
	"cmp"
	"net/http"

	"github.com/redlatch/redlatch/node"
)

// A Transport sends a token with HTTP requests: the one that a request's
// context carries (see WithToken), else its own. A request that has the header
// already, or for which there is no token, is sent unchanged. ResponseError
// says what a response means. The zero value works.
type Transport struct {
	// Token is sent with requests whose context carries none. Defaults to
	// none.
	Token node.Token

	// Reader says that Token is a reader's. Defaults to false.
	Reader bool

	// Base sends the requests. Defaults to http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip sends a request. If its token is invalid it returns an error, and
// nothing is sent.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := cmp.Or(t.Base, http.DefaultTransport)
	token, given := TokenFrom(r.Context())
	reads := IsReader(r.Context())
	if !given {
		token, given, reads = t.Token, t.Token != 0, t.Reader
	}
	if !given || len(r.Header.Values(TokenHeader)) > 0 {
		return base.RoundTrip(r)
	}
	if err := checkToken(token); err != nil {
		if r.Body != nil {
			r.Body.Close() // a transport always closes it
		}
		return nil, err
	}
	// A transport must not change the request it was given.
	r = r.Clone(r.Context())
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(TokenHeader, token.String())
	if reads {
		r.Header.Set(ReaderHeader, "true")
	}
	return base.RoundTrip(r)
}
