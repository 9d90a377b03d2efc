//go:build unix

package main

import "golang.org/x/sys/unix"

// session is the session that we are in.
func session() int {
	id, _ := unix.Getsid(0)
	return id
}
