//go:build !linux

package direct

import "net"

// newQuiet returns nil: callers read on Linux only.
func newQuiet(net.Conn) quietSocket { return nil }
