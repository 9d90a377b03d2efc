package system

import (
	"bytes"
	"fmt"

	"github.com/redlatch/redlatch/bench/resp"
)

// wire is one raw connection to each server.
type wire struct {
	conns []*resp.Conn
	// owed are the replies that were not waited for, since a majority had
	// answered.
	owed []int
}

func dialAll(addresses []string) (*wire, error) {
	w := &wire{owed: make([]int, len(addresses))}
	for _, a := range addresses {
		c, err := resp.Dial(a)
		if err != nil {
			w.Close()
			return nil, err
		}
		w.conns = append(w.conns, c)
	}
	return w, nil
}

// Close closes the connections.
func (w *wire) Close() {
	for _, c := range w.conns {
		c.Close()
	}
}

// round sends a command to each server, and returns when a majority has
// answered want. The replies of the rest are read before the next round, when
// they are there already.
func (w *wire) round(commands [][]byte, want []byte) error {
	for i, c := range w.conns {
		for ; w.owed[i] > 0; w.owed[i]-- {
			if _, err := c.First(); err != nil {
				return err
			}
		}
		if err := c.Send(commands[i]); err != nil {
			return err
		}
		w.owed[i]++
	}
	for i := 0; i <= len(w.conns)/2; i++ {
		got, err := w.conns[i].First()
		if err != nil {
			return err
		}
		w.owed[i]--
		if !bytes.Equal(got, want) {
			return fmt.Errorf("floor: server %d answered %q instead of %q", i, got, want)
		}
	}
	return nil
}

// each sends a command to every server and waits for all of them.
func (w *wire) each(args ...string) ([]resp.Reply, error) {
	replies := make([]resp.Reply, len(w.conns))
	for i, c := range w.conns {
		for ; w.owed[i] > 0; w.owed[i]-- {
			if _, err := c.First(); err != nil {
				return nil, err
			}
		}
		var err error
		if replies[i], err = c.Do(args...); err != nil {
			return nil, err
		}
	}
	return replies, nil
}
