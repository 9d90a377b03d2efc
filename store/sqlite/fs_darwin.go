package sqlite

import "golang.org/x/sys/unix"

func fileSystem(path string) (string, fsKind) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return "", unknownFS
	}
	name := unix.ByteSliceToString(s.Fstypename[:])
	switch name {
	case "apfs", "hfs":
		return name, localFS
	case "nfs", "smbfs", "afpfs", "webdav", "ftp":
		return name, networkFS
	}
	return name, foreignFS
}

// mountPoint is always false: files cannot be mounted here.
func mountPoint(string) bool { return false }
