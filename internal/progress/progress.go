// Package progress lets a call that takes many steps tell its caller that it
// goes on, so that the caller can bound each step and not the whole.
package progress

import "context"

type key struct{}

// With returns a context whose Tell calls tell.
func With(ctx context.Context, tell func()) context.Context {
	return context.WithValue(ctx, key{}, tell)
}

// Tell says that a step is done; to nobody if nobody asked.
func Tell(ctx context.Context) {
	if tell, ok := ctx.Value(key{}).(func()); ok {
		tell()
	}
}
