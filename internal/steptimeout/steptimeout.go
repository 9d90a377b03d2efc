// Package steptimeout lets a call with many steps report each step to its caller,
// so that the caller can limit the time of each step and not of the whole call.
package steptimeout

import "context"

type key struct{}

// With returns a context whose Tell calls tell.
func With(ctx context.Context, tell func()) context.Context {
	return context.WithValue(ctx, key{}, tell)
}

// Tell reports that a step is done, if the caller asked for reports.
func Tell(ctx context.Context) {
	if tell, ok := ctx.Value(key{}).(func()); ok {
		tell()
	}
}
