//go:build !unix

package sqlite

import "os"

// hardLinked does not see the names of a file here.
func hardLinked(os.FileInfo) bool { return false }
