//go:build !linux && !darwin

package sqlite

// fileSystem does not know the file system here.
func fileSystem(string) (string, fsKind) { return "", unknownFS }

// mountPoint does not see mounts here.
func mountPoint(string) bool { return false }
