package fence

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/redlatch/redlatch/node"
)

// The types of problems that a Middleware answers with: by RFC 9457 these are
// addresses of pages that explain them.
const (
	docs           = "https://pkg.go.dev/github.com/redlatch/redlatch/fence#"
	problemStale   = docs + "StaleError"
	problemMissing = docs + "ErrNoToken"
	problemBad     = docs + "TokenHeader"
	problemUnknown = "about:blank" // nothing beyond the status
)

// problem is an RFC 9457 problem. Tokens are strings: JSON readers that keep
// numbers as doubles must not round them.
type problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Resource string `json:"resource,omitempty"`
	Token    string `json:"token,omitempty"`
	Highest  string `json:"highest,omitempty"`
}

// problemFor returns what a client may know of an error. Faults inside the
// server are not shown to it.
func problemFor(err error) problem {
	var stale *StaleError
	var bad *node.ConfigError
	switch {
	case errors.As(err, &stale):
		return problem{Type: problemStale, Title: "Stale token", Status: http.StatusConflict, Detail: stale.Error(),
			Resource: stale.Resource, Token: stale.Token.String(), Highest: stale.Highest.String()}
	case errors.Is(err, ErrNoToken):
		return problem{Type: problemMissing, Title: "Token required", Status: http.StatusPreconditionRequired,
			Detail: "send the fencing token of your lock in the header " + TokenHeader}
	case errors.As(err, &bad):
		return problem{Type: problemBad, Title: "Bad token or resource", Status: http.StatusBadRequest, Detail: bad.Error()}
	}
	return problem{Type: problemUnknown, Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
		Detail: "the token could not be checked; nothing was written"}
}

func (p problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic("redlatch: a problem is strings and a number: " + err.Error())
	}
	w.Header().Set("Content-Type", problemMedia)
	w.WriteHeader(p.Status)
	w.Write(body)
}

const problemMedia = "application/problem+json"

// ResponseError returns the error that a Middleware answered with: a
// *StaleError, or ErrNoToken. It returns nil for every other response, also for
// other failures. The body can still be read afterwards.
func ResponseError(resp *http.Response) error {
	if resp.StatusCode != http.StatusConflict && resp.StatusCode != http.StatusPreconditionRequired {
		return nil
	}
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != problemMedia {
		return nil
	}
	// Far more than a problem has; the rest is not read.
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	var p problem
	if err != nil || json.Unmarshal(body, &p) != nil {
		return nil
	}
	switch {
	case p.Type == problemMissing && resp.StatusCode == http.StatusPreconditionRequired:
		return ErrNoToken
	case p.Type == problemStale && resp.StatusCode == http.StatusConflict:
		token, err1 := node.ParseToken(p.Token)
		highest, err2 := node.ParseToken(p.Highest)
		if err1 == nil && err2 == nil {
			return &StaleError{Resource: p.Resource, Token: token, Highest: highest}
		}
	}
	return nil
}
