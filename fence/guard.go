package fence

import (
	"context"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch/node"
)

// A Guard keeps the highest token per resource. Gate, SQL and Redis are
// guards, and ReadGuards.
type Guard interface {
	// Check claims the resource for a token. If the token is not lower than any
	// claimed before, it remembers the token and returns nil; otherwise it
	// returns a *StaleError. Any other error says nothing about the token.
	Check(ctx context.Context, resource string, token node.Token) error
}

// A ReadGuard also accepts readers, the holders of leases with
// redlatch.LockOptions.Shared. It keeps two numbers per resource: the highest
// token, and the highest token of a writer.
type ReadGuard interface {
	Guard
	// CheckRead claims the resource for a reader's token, so that writers with
	// lower tokens are refused from now on. If the token is not lower than any
	// that a writer claimed before, it remembers the token and returns nil;
	// otherwise it returns a *StaleError. Readers do not refuse each other. Any
	// other error says nothing about the token.
	CheckRead(ctx context.Context, resource string, token node.Token) error
}

var (
	_ ReadGuard = (*Gate)(nil)
	_ ReadGuard = (*SQL)(nil)
	_ ReadGuard = (*Redis)(nil)
)

// MaxResourceLen is the length of the longest name of a resource, in bytes. It
// fits the keys of every store.
const MaxResourceLen = 255

// checkInput rejects input that must never reach a store.
func checkInput(resource string, token node.Token) error {
	if err := checkResource(resource); err != nil {
		return err
	}
	return checkToken(token)
}

func checkResource(resource string) error {
	if resource == "" || len(resource) > MaxResourceLen || !utf8.ValidString(resource) || strings.ContainsFunc(resource, unicode.IsControl) {
		return &node.ConfigError{Field: "resource", Value: resource, Bound: "1 to 255 bytes of UTF-8 without control characters"}
	}
	return nil
}

func checkToken(token node.Token) error {
	if token >= 1 && token <= node.MaxToken {
		return nil
	}
	e := &node.ConfigError{Field: "token", Value: uint64(token), Bound: "between 1 and 9007199254740991"}
	if token > math.MaxInt64 {
		e.Value = int64(token) // it was negative before it became a Token
	}
	return e
}
