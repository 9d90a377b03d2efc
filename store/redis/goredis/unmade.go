package goredis

import (
	"net"
	"time"
)

// unmade replaces a connection that could not be made; every call on it fails
// with the error of the dial. Otherwise the library's pool would print every
// failed dial to standard error, past the client's logger, and after a few of
// them dial only once a second.
type unmade struct{ err error }

func (c unmade) Read([]byte) (int, error)         { return 0, c.err }
func (c unmade) Write([]byte) (int, error)        { return 0, c.err }
func (c unmade) Close() error                     { return nil }
func (c unmade) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c unmade) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c unmade) SetDeadline(time.Time) error      { return nil }
func (c unmade) SetReadDeadline(time.Time) error  { return nil }
func (c unmade) SetWriteDeadline(time.Time) error { return nil }
