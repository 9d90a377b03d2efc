// Package resp speaks the Redis protocol over a plain socket, with nothing
// between: the floors are measured with it, and servers asked for their
// statistics.
package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Conn is a connection to a server. It is used by one goroutine at a time.
type Conn struct {
	c   net.Conn
	r   *bufio.Reader
	buf []byte
}

// Dial connects to a server.
func Dial(addr string) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return nil, err
	}
	return &Conn{c: c, r: bufio.NewReaderSize(c, 64<<10)}, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.c.Close() }

// SetDeadline bounds all that follows.
func (c *Conn) SetDeadline(t time.Time) error { return c.c.SetDeadline(t) }

// ServerError is a server's error reply.
type ServerError string

func (e ServerError) Error() string { return string(e) }

// Reply is a reply of any kind: a text or number, nothing, or a list.
type Reply struct {
	Text  string
	Nil   bool
	Items []Reply
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

// Send sends bytes that AppendCommand made.
func (c *Conn) Send(b []byte) error {
	_, err := c.c.Write(b)
	return err
}

// Do sends a command and reads its reply.
func (c *Conn) Do(args ...string) (Reply, error) {
	c.buf = AppendCommand(c.buf[:0], args...)
	if err := c.Send(c.buf); err != nil {
		return Reply{}, err
	}
	return c.Receive()
}

// Receive reads a reply.
func (c *Conn) Receive() (Reply, error) {
	kind, rest, err := c.line()
	if err != nil {
		return Reply{}, err
	}
	switch kind {
	case '+', ':':
		return Reply{Text: string(rest)}, nil
	case '-':
		return Reply{}, ServerError(rest)
	case '$', '*':
	default:
		return Reply{}, fmt.Errorf("resp: unexpected reply %q", append([]byte{kind}, rest...))
	}
	n, err := strconv.Atoi(string(rest))
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
	items := make([]Reply, n)
	for i := range items {
		if items[i], err = c.Receive(); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Items: items}, nil
}

// First reads a reply and returns its first text, or that of its first item,
// without allocating: it is what a floor looks at. The bytes are good until
// the next reading; nil stands for nothing.
func (c *Conn) First() ([]byte, error) {
	c.buf = c.buf[:0]
	got, err := c.first(true)
	if err != nil || !got {
		return nil, err
	}
	return c.buf, nil
}

func (c *Conn) first(keep bool) (bool, error) {
	kind, rest, err := c.line()
	if err != nil {
		return false, err
	}
	switch kind {
	case '+', ':':
		if keep {
			c.buf = append(c.buf, rest...)
		}
		return true, nil
	case '-':
		return false, ServerError(rest)
	case '$', '*':
	default:
		return false, fmt.Errorf("resp: unexpected reply %q", rest)
	}
	n, err := number(rest)
	if err != nil || n < 0 {
		return false, err
	}
	if kind == '$' {
		text, err := c.r.Peek(n + 2)
		if err != nil {
			return false, err
		}
		if keep {
			c.buf = append(c.buf, text[:n]...)
		}
		_, err = c.r.Discard(n + 2)
		return true, err
	}
	got := false
	for i := range n {
		ok, err := c.first(keep && i == 0)
		if err != nil {
			return false, err
		}
		got = got || ok && i == 0
	}
	return got, nil
}

var errNumber = errors.New("resp: unexpected length")

func number(b []byte) (int, error) {
	if len(b) == 2 && b[0] == '-' && b[1] == '1' {
		return -1, nil
	}
	n := 0
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, errNumber
		}
		n = n*10 + int(d-'0')
	}
	return n, nil
}

// line reads up to the next line end, and parts the kind of reply from it.
func (c *Conn) line() (byte, []byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 3 {
		return 0, nil, fmt.Errorf("resp: unexpected line %q", line)
	}
	return line[0], line[1 : len(line)-2], nil
}
