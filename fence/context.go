package fence

import (
	"context"

	"github.com/redlatch/redlatch/node"
)

type tokenKey struct{}

// carried is what a context carries.
type carried struct {
	token node.Token
	reads bool // it is a reader's
}

// WithToken returns a context that carries a token, for a Transport to send.
func WithToken(ctx context.Context, token node.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, carried{token: token})
}

// WithReadToken is WithToken for the token of a reader.
func WithReadToken(ctx context.Context, token node.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, carried{token, true})
}

// TokenFrom returns the token that a context carries. In a handler behind
// Middleware it is the token of the request.
func TokenFrom(ctx context.Context) (token node.Token, ok bool) {
	c, ok := ctx.Value(tokenKey{}).(carried)
	return c.token, ok
}

// IsReader reports whether the token that a context carries is a reader's.
func IsReader(ctx context.Context) bool {
	c, _ := ctx.Value(tokenKey{}).(carried)
	return c.reads
}
