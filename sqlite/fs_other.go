//go:build !linux && !darwin

package sqlite

// fileSystem has no way to tell.
func fileSystem(string) (string, fsKind) { return "", unknownFS }
