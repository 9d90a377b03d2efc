package sqlite

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystems are the numbers of file systems in statfs(2).
var fileSystems = map[fsKind]map[int64]string{
	networkFS: {
		0x6969: "NFS", 0x517b: "SMB", 0xfe534d42: "SMB 2", 0xff534d42: "CIFS", 0x5346414f: "AFS", 0x73757245: "Coda", 0x00c36400: "Ceph",
		0x0bd00bd0: "Lustre", 0x47504653: "GPFS", 0x01161970: "GFS2", 0x7461636f: "OCFS2", 0x01021997: "9P",
		0x786f4256: "a folder shared by VirtualBox", 0xbacbacbc: "a folder shared by VMware",
	},
	foreignFS: {0x65735546: "FUSE"},
	layerFS:   {0x794c7630: "overlayfs"},
	memoryFS:  {0x01021994: "tmpfs", 0x858458f6: "ramfs"},
	localFS: {
		0xef53: "ext", 0x58465342: "XFS", 0x9123683e: "Btrfs", 0x2fc12fc1: "ZFS", 0xf2f52010: "F2FS", 0xca451a4e: "bcachefs",
		0x3153464a: "JFS", 0x52654973: "ReiserFS", 0x4d44: "FAT", 0x2011bab0: "exFAT", 0x5346544e: "NTFS",
	},
}

func fileSystem(path string) (string, fsKind) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return "", unknownFS
	}
	number := int64(uint32(s.Type)) // signed on 32-bit systems
	for kind, names := range fileSystems {
		if name, ok := names[number]; ok {
			return name, kind
		}
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
