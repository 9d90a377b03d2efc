package contender

import (
	"context"
	"crypto/sha1"
	"fmt"
	"strconv"

	"github.com/redlatch/redlatch/internal/resp"
)

// floor is raw connections to servers, for one goroutine.
type floor struct {
	conns []*resp.Conn
	owed  []int // replies that are still to be read from each
	from  int   // which is read first
}

// round sends a command to all servers and waits for a majority. Another one is
// read first each time, so that no server owes more than a few replies.
func (f *floor) round(args ...string) error {
	for i, c := range f.conns {
		if err := c.Send(args...); err != nil {
			return err
		}
		f.owed[i]++
	}
	for n := range len(f.conns)/2 + 1 {
		i := (f.from + n) % len(f.conns)
		for f.owed[i] > 0 {
			f.owed[i]--
			// A refusal is no error: it takes as long.
			if _, err := f.conns[i].Receive(); err != nil {
				return err
			}
		}
	}
	f.from++
	return nil
}

// openFloor sends the least that a lock could send: a command or a script that
// acquires, and the script that releases.
func openFloor(script string, plain bool) func(context.Context, []string) (*Locker, error) {
	return func(_ context.Context, addresses []string) (*Locker, error) {
		f := &floor{owed: make([]int, len(addresses))}
		for _, a := range addresses {
			c, err := resp.Dial("tcp", a)
			if err != nil {
				return nil, err
			}
			f.conns = append(f.conns, c)
		}
		ms := strconv.FormatInt(TTL.Milliseconds(), 10)
		return &Locker{
			Lock: func(_ context.Context, name string) (Release, error) {
				run := []string{"EVALSHA", fmt.Sprintf("%x", sha1.Sum([]byte(script))), "1", name, "value"}
				acquire := run
				if plain {
					acquire = []string{"SET", name, "value", "NX", "PX", ms}
				}
				return func(context.Context) error { return f.round(run...) }, f.round(acquire...)
			},
			Close: func() {
				for _, c := range f.conns {
					c.Close()
				}
			},
		}, f.round("SCRIPT", "LOAD", script)
	}
}
