package system

import (
	"fmt"

	"github.com/redlatch/redlatch/internal/resp"
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
		c, err := resp.Dial("tcp", a)
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

// load loads a script on every server and returns its digest.
func (w *wire) load(script string) (string, error) {
	var digest string
	for _, c := range w.conns {
		reply, err := c.Do("SCRIPT", "LOAD", script)
		if err != nil {
			return "", err
		}
		digest = reply.Text
	}
	return digest, nil
}

// round sends some commands to each server, and returns when a majority has
// given to all of them the reply that granted accepts. The replies of the rest
// are read before the next round: by then they have arrived.
func (w *wire) round(commands int, granted func(resp.Reply) bool, command func(server, i int) []string) error {
	for server, c := range w.conns {
		for ; w.owed[server] > 0; w.owed[server]-- {
			if _, err := c.Receive(); err != nil {
				return err
			}
		}
		for i := range commands {
			c.Queue(command(server, i)...)
		}
		if commands == 0 {
			continue
		}
		if err := c.Flush(); err != nil {
			return err
		}
		w.owed[server] += commands
	}
	for server := 0; server <= len(w.conns)/2; server++ {
		for range commands {
			reply, err := w.conns[server].Receive()
			if err != nil {
				return err
			}
			w.owed[server]--
			if !granted(reply) {
				return fmt.Errorf("floor: server %d answered %q", server, reply)
			}
		}
	}
	return nil
}

// says returns a function that accepts a reply of that text.
func says(text string) func(resp.Reply) bool {
	return func(r resp.Reply) bool { return r.Text == text }
}
