// Package resp speaks the Redis protocol, versions 2 and 3, without a client
// library: for package direct, for tests and tools that ask a server something,
// and for measurements of what a client library costs.
package resp

import (
	"net"
	"strconv"
	"time"
)

// Conn is a connection to a server. One goroutine may use it at a time.
type Conn struct {
	c   net.Conn
	r   *Reader
	buf []byte
}

// NewConn returns a connection over a socket.
func NewConn(c net.Conn) *Conn { return &Conn{c: c, r: NewReader(c)} }

// dialLimit bounds how long a connection may take.
const dialLimit = 2 * time.Second

// Dial connects to a server. The network is tcp or unix.
func Dial(network, address string) (*Conn, error) { return dial(network, address, dialLimit) }

func dial(network, address string, limit time.Duration) (*Conn, error) {
	c, err := net.DialTimeout(network, address, limit)
	if err != nil {
		return nil, err
	}
	return NewConn(c), nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.c.Close() }

// SetDeadline bounds all later calls.
func (c *Conn) SetDeadline(t time.Time) error { return c.c.SetDeadline(t) }

// AppendCommand appends a command in the form in which it is sent.
func AppendCommand(b []byte, args ...string) []byte {
	b = AppendHead(b, len(args))
	for _, a := range args {
		b = AppendText(b, a)
	}
	return b
}

// AppendHead appends the beginning of a command of n parts.
func AppendHead(b []byte, n int) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, '\r', '\n')
}

// AppendText appends one part of a command.
func AppendText(b []byte, text string) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(text)), 10)
	b = append(b, '\r', '\n')
	b = append(b, text...)
	return append(b, '\r', '\n')
}

// Do sends a command and reads its reply.
func (c *Conn) Do(args ...string) (Reply, error) {
	c.buf = AppendCommand(c.buf[:0], args...)
	if _, err := c.c.Write(c.buf); err != nil {
		return Reply{}, err
	}
	return c.Receive()
}

// Reader returns what Receive reads with.
func (c *Conn) Reader() *Reader { return c.r }

// Receive reads a reply; see Reader.Read.
func (c *Conn) Receive() (Reply, error) { return c.r.Read() }

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
