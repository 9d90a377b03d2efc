package sqlite

import (
	"errors"
	"fmt"
	"os"

	"github.com/redlatch/redlatch/node"
	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// fault is an error that says what is wrong with the file.
type fault string

func (f fault) Error() string { return string(f) }

func faultf(format string, args ...any) error { return fault(fmt.Sprintf(format, args...)) }

const (
	errIsFolder = fault("the path is a folder: give the path of a file")
	errLinked   = fault("the file has a second name (a hard link), and locks by two names" +
		" do not exclude each other: remove one of them")
	errMounted = fault("the file is a mount point, and locks by two paths do not exclude" +
		" each other: mount its folder instead")
	errForeign     = fault("the file is a database of another program: choose another path")
	errNoBootClock = fault("the file goes by the boot clock, which this process cannot read" +
		" (/proc/sys/kernel/random/boot_id): choose another path")
	errOtherBoot = fault("the file is in use by a machine that booted at another time:" +
		" choose a path on a disk of this machine alone")
	errReplaced = fault("the file was removed or replaced while it was in use: open it anew")
)

// code returns SQLite's primary result code, or 0.
func code(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return codes.SQLITE_OK
}

// explain adds to an error of SQLite what to do.
func explain(err error) error {
	hint := ""
	switch code(err) {
	case codes.SQLITE_CANTOPEN:
		hint = "cannot be opened: this user must be allowed to create files in its folder"
	case codes.SQLITE_READONLY, codes.SQLITE_PERM, codes.SQLITE_AUTH:
		hint = "cannot be written: this user must be allowed to write to it and to its folder"
	case codes.SQLITE_NOTADB:
		hint = "is not a database: move it away, or choose another path"
	case codes.SQLITE_CORRUPT:
		hint = "is damaged: when no process uses it, remove it and those beside it that end in -wal and -shm"
	case codes.SQLITE_FULL:
		hint = "cannot grow: free some space on its disk"
	case codes.SQLITE_IOERR:
		hint = "cannot be read or written: look at its disk"
	case codes.SQLITE_ERROR: // a column or table is missing
		hint = "has another format now, perhaps of a newer release: upgrade redlatch, or open it anew"
	case codes.SQLITE_BUSY:
		hint = "is in use by another process"
	}
	if errors.Is(err, os.ErrPermission) {
		hint = "cannot be opened: this user must be allowed to use its folder"
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("the file %s: %w", hint, err)
}

// unsent explains the error of a request that had no effect.
func unsent(err error) error { return fmt.Errorf("%w (%w)", explain(err), node.ErrUnsent) }

// failed is the error of a file that cannot be opened or closed.
func failed(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redlatch: sqlite:%s: %w", path, explain(err))
}
