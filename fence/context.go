package fence

import (
	"context"

	"github.com/redlatch/redlatch"
)

type tokenKey struct{}

// WithToken returns a context that carries a token, for a Transport to send.
func WithToken(ctx context.Context, token redlatch.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// TokenFrom returns the token that a context carries. In a handler behind
// Middleware it is the one that the request came with.
func TokenFrom(ctx context.Context) (token redlatch.Token, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(redlatch.Token)
	return token, ok
}
