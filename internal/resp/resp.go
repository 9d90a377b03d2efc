// Package resp speaks the Redis protocol over a plain socket, without a client
// library: for tests and tools that ask a server something, and for
// measurements of what a client library costs.
package resp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Conn is a connection to a server. One goroutine may use it at a time.
type Conn struct {
	c   net.Conn
	r   *bufio.Reader
	buf []byte
}

// dialLimit bounds how long a connection may take.
const dialLimit = 2 * time.Second

// Dial connects to a server. The network is tcp or unix.
func Dial(network, address string) (*Conn, error) { return dial(network, address, dialLimit) }

func dial(network, address string, limit time.Duration) (*Conn, error) {
	c, err := net.DialTimeout(network, address, limit)
	if err != nil {
		return nil, err
	}
	return &Conn{c: c, r: bufio.NewReader(c)}, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.c.Close() }

// SetDeadline bounds all later calls.
func (c *Conn) SetDeadline(t time.Time) error { return c.c.SetDeadline(t) }

// ServerError is a server's error reply.
type ServerError string

func (e ServerError) Error() string { return string(e) }

// Reply is a reply of any kind: a text or number, nil, or a list.
type Reply struct {
	Text  string
	Nil   bool
	Items []Reply
}

// String returns the reply as text: "" for nil, a list one item a line.
func (r Reply) String() string {
	if r.Items == nil {
		return r.Text
	}
	lines := make([]string, len(r.Items))
	for i, item := range r.Items {
		lines[i] = item.String()
	}
	return strings.Join(lines, "\n")
}

// AppendCommand appends a command in the form in which it is sent.
func AppendCommand(b []byte, args ...string) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	b = append(b, '\r', '\n')
	for _, a := range args {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(a)), 10)
		b = append(b, '\r', '\n')
		b = append(b, a...)
		b = append(b, '\r', '\n')
	}
	return b
}

// Send sends a command and does not wait for its reply, which Receive reads.
func (c *Conn) Send(args ...string) error {
	c.buf = AppendCommand(c.buf[:0], args...)
	_, err := c.c.Write(c.buf)
	return err
}

// Do sends a command and reads its reply.
func (c *Conn) Do(args ...string) (Reply, error) {
	if err := c.Send(args...); err != nil {
		return Reply{}, err
	}
	return c.Receive()
}

// Receive reads a reply. An error inside a list is returned as the error of the
// whole, after the list was read.
func (c *Conn) Receive() (Reply, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return Reply{}, err
	}
	if len(line) < 3 {
		return Reply{}, fmt.Errorf("resp: unexpected line %q", line)
	}
	kind, rest := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+', ':':
		return Reply{Text: rest}, nil
	case '-':
		return Reply{}, ServerError(rest)
	case '$', '*':
	default:
		return Reply{}, fmt.Errorf("resp: unexpected reply %q", line)
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return Reply{}, fmt.Errorf("resp: unexpected length: %w", err)
	}
	if n < 0 {
		return Reply{Nil: true}, nil
	}
	if kind == '$' {
		text := make([]byte, n+2)
		_, err := io.ReadFull(c.r, text)
		return Reply{Text: string(text[:n])}, err
	}
	return c.list(n)
}

func (c *Conn) list(n int) (Reply, error) {
	items := make([]Reply, n)
	var failed error
	for i := range items {
		var err error
		items[i], err = c.Receive()
		if _, inside := err.(ServerError); inside {
			failed = err
		} else if err != nil {
			return Reply{}, err
		}
	}
	return Reply{Items: items}, failed
}

// Ask sends a command over a connection of its own and returns the reply as
// text; see Reply.String. The network is tcp or unix.
func Ask(network, address string, limit time.Duration, args ...string) (string, error) {
	c, err := dial(network, address, min(limit, dialLimit))
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(limit))
	reply, err := c.Do(args...)
	return reply.String(), err
}
