package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/node"
)

var (
	// ErrStale is returned when the resource has seen a higher token. Nothing
	// was written. The error is a *StaleError that says which.
	ErrStale = errors.New("redlatch: token is stale")

	// ErrNoToken is returned when a server asks for a token and the request
	// had none. Nothing was written.
	ErrNoToken = errors.New("redlatch: request has no token")
)

// StaleError says which token was refused, and which token the resource has
// seen.
type StaleError struct {
	Resource string
	Token    node.Token // the one that was refused
	Highest  node.Token // the highest that the resource has seen; the highest of a writer if a reader was refused
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("redlatch: token %v is stale: %q has seen %v", e.Token, e.Resource, e.Highest)
}

// Is reports that every StaleError is an ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// ended makes sure that an error caused by the context's end wraps the
// context's error: drivers report it in their own words.
func ended(ctx context.Context, err error) error {
	if end := ctx.Err(); err != nil && end != nil && !errors.Is(err, end) {
		return fmt.Errorf("%w: %w", end, err)
	}
	return err
}
