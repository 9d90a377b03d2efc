// Package drive is the side of a foreign client: it reads orders, one a line,
// executes them with a lock of that client, and answers each with one line. The
// drivers in other languages, in clients/, use the same protocol.
//
//	acquire NAME MS    ok | held | error TEXT     asks once, does not wait
//	extend MS          ok | lost | cannot | error TEXT
//	release            ok | lost | error TEXT
//
// A driver prints "ready VERSION" when it accepts orders, and ends with its
// input. It holds one lock at a time.
package drive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Lock is one lock of a foreign client, as its own documentation uses it.
type Lock interface {
	// Acquire asks once for the name and reports whether it was granted.
	Acquire(ctx context.Context, name string, ttl time.Duration) (bool, error)
	// Extend renews the time of what is held. It reports false if the client
	// says that the lock is no longer its own.
	Extend(ctx context.Context, ttl time.Duration) (bool, error)
	// Release frees what is held. It reports false if the client says that the
	// lock was no longer its own.
	Release(ctx context.Context) (bool, error)
}

// ErrCannot is returned by the Extend of a client that has no extension, or
// that only extends by itself.
var ErrCannot = errors.New("this client has no extension")

// patience limits the time of one order. It is far longer than every order
// needs, so that a client that hangs is reported.
const patience = 20 * time.Second

// Serve executes orders until the input ends.
func Serve(version string, lock Lock, in io.Reader, out io.Writer) error {
	if _, err := fmt.Fprintf(out, "ready %s\n", version); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if _, err := fmt.Fprintln(out, answer(lock, strings.Fields(lines.Text()))); err != nil {
			return err
		}
	}
	return lines.Err()
}

func answer(lock Lock, order []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch {
	case len(order) == 3 && order[0] == "acquire":
		return said("held")(lock.Acquire(ctx, order[1], millis(order[2])))
	case len(order) == 2 && order[0] == "extend":
		return said("lost")(lock.Extend(ctx, millis(order[1])))
	case len(order) == 1 && order[0] == "release":
		return said("lost")(lock.Release(ctx))
	}
	return fmt.Sprintf("error not an order: %q", strings.Join(order, " "))
}

func said(no string) func(bool, error) string {
	return func(ok bool, err error) string {
		switch {
		case errors.Is(err, ErrCannot):
			return "cannot"
		case err != nil:
			return "error " + strings.ReplaceAll(err.Error(), "\n", " ")
		case !ok:
			return no
		}
		return "ok"
	}
}

// done reports whether a request succeeded. One that was refused, which the client
// returns as an error, did not.
func done(err, refused error) (bool, error) {
	if errors.Is(err, refused) {
		return false, nil
	}
	return err == nil, err
}

func millis(s string) time.Duration {
	n, _ := strconv.Atoi(s)
	return time.Duration(n) * time.Millisecond
}

// Module returns the version of a module that this program was built with.
func Module(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "unknown"
}
