package rueidis

import (
	"context"
	"errors"
	"net"
	"testing"
)

// TestConnectionThatAnotherGaveUpIsTriedAgain: requests that wait for one
// connection share the error of the request that began to connect.
func TestConnectionThatAnotherGaveUpIsTriedAgain(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: context.Canceled}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		what string
		ctx  context.Context
		err  error
		want bool
	}{
		{"another's context ended", context.Background(), dial, true},
		{"another's time was over", context.Background(), &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, true},
		{"our own context ended", ended, dial, false},
		{"the server refused", context.Background(), &net.OpError{Op: "dial", Err: errors.New("connection refused")}, false},
		{"it may have been sent", context.Background(), &net.OpError{Op: "read", Err: context.Canceled}, false},
		{"no error", context.Background(), nil, false},
	} {
		if got := givenUpByAnother(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
