package sqlite

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystems are the numbers of file systems in statfs(2).
var fileSystems = map[int64]struct {
	name string
	kind fsKind
}{
	0x6969:     {"NFS", networkFS},
	0x517b:     {"SMB", networkFS},
	0xfe534d42: {"SMB 2", networkFS},
	0xff534d42: {"CIFS", networkFS},
	0x5346414f: {"AFS", networkFS},
	0x73757245: {"Coda", networkFS},
	0x00c36400: {"Ceph", networkFS},
	0x0bd00bd0: {"Lustre", networkFS},
	0x47504653: {"GPFS", networkFS},
	0x01161970: {"GFS2", networkFS},
	0x7461636f: {"OCFS2", networkFS},
	0x01021997: {"9P", networkFS},
	0x65735546: {"FUSE", foreignFS},
	0x786f4256: {"a folder shared by VirtualBox", networkFS},
	0xbacbacbc: {"a folder shared by VMware", networkFS},
	0x794c7630: {"overlayfs", layerFS},
	0x01021994: {"tmpfs", memoryFS},
	0x858458f6: {"ramfs", memoryFS},
	0xef53:     {"ext", localFS},
	0x58465342: {"XFS", localFS},
	0x9123683e: {"Btrfs", localFS},
	0x2fc12fc1: {"ZFS", localFS},
	0xf2f52010: {"F2FS", localFS},
	0xca451a4e: {"bcachefs", localFS},
	0x3153464a: {"JFS", localFS},
	0x52654973: {"ReiserFS", localFS},
	0x4d44:     {"FAT", localFS},
	0x2011bab0: {"exFAT", localFS},
	0x5346544e: {"NTFS", localFS},
}

func fileSystem(path string) (string, fsKind) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return "", unknownFS
	}
	number := int64(uint32(s.Type)) // signed on 32-bit systems
	if fs, ok := fileSystems[number]; ok {
		return fs.name, fs.kind
	}
	return fmt.Sprintf("type %#x", number), unknownFS
}

// mountPoint reports whether something is mounted at path itself. Kernels before
// 5.8 do not say.
func mountPoint(path string) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, 0, &s)
	return err == nil && s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
