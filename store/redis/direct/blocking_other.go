//go:build !linux

package direct

import "os"

// blocking returns nil: callers read on Linux only.
func blocking(any) *os.File { return nil }

func unread(*os.File) bool { return false }
