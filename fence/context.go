package fence

import (
	"context"

	"github.com/redlatch/redlatch/node"
)

type tokenKey struct{}

// WithToken returns a context that carries a token, for a Transport to send.
func WithToken(ctx context.Context, token node.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// TokenFrom returns the token that a context carries. In a handler behind
// Middleware it is the token of the request.
func TokenFrom(ctx context.Context) (token node.Token, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(node.Token)
	return token, ok
}
