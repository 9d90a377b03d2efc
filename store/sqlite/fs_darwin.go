package sqlite

import "syscall"

func fileSystem(path string) (string, fsKind) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return "", unknownFS
	}
	var name []byte
	for _, c := range s.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	switch string(name) {
	case "apfs", "hfs":
		return string(name), localFS
	case "nfs", "smbfs", "afpfs", "webdav", "ftp":
		return string(name), networkFS
	}
	return string(name), foreignFS
}

// mountPoint is always false: files cannot be mounted here.
func mountPoint(string) bool { return false }
