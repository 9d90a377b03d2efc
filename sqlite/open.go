package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// openLimit limits the wait for other processes that open or close the file at
// the same time. Each needs milliseconds.
const openLimit = 10 * time.Second

// Open returns a node for the lock file at path. It creates a missing file,
// readable by this user only, and its folder.
func Open(path string) (*Node, error) { return open(path, systemTime()) }

func open(path string, k timekeeper) (*Node, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("redlatch: lock file %s: %w", path, err)
	}
	isNew, err := prepare(abs)
	if err != nil {
		return nil, explain(abs, err)
	}
	n := &Node{
		path:  abs,
		time:  k,
		turn:  make(chan struct{}, 1),
		stmts: map[query]*sql.Stmt{},
	}
	ctx, cancel := context.WithTimeout(context.Background(), openLimit)
	defer cancel()
	if err := n.open(ctx, isNew); err != nil {
		n.Close()
		return nil, explain(abs, err)
	}
	return n, nil
}

// prepare creates the folder, and reports whether the file does not exist yet.
// It does not open the file: see the caveat in the package comment.
func prepare(path string) (isNew bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return false, errIsFolder
	case err == nil:
		return false, nil
	case errors.Is(err, os.ErrNotExist):
		return true, os.MkdirAll(filepath.Dir(path), 0o700)
	}
	return false, err
}

func (n *Node) open(ctx context.Context, isNew bool) error {
	var err error
	if n.db, err = sql.Open("sqlite", dsn(n.path)); err != nil {
		return err
	}
	// One connection: a second one would contend with the first for the file.
	n.db.SetMaxOpenConns(1)
	if n.conn, err = n.db.Conn(ctx); err != nil {
		return err
	}
	if isNew {
		// Before there is any data. The files that SQLite puts beside it get
		// the same mode.
		if err := os.Chmod(n.path, 0o600); err != nil {
			return err
		}
	}
	// Every step may find the file busy, the first one too: other processes may
	// be creating the file, or be the last to close it.
	if err := retry(ctx, mostPause, func() error { return n.setUp(ctx) }); err != nil {
		return err
	}
	n.file, err = os.Stat(n.path)
	return err
}

func (n *Node) setUp(ctx context.Context) error {
	// With a write-ahead log this syncs when the log is folded in, not on every
	// grant. The package comment says what a power failure can lose.
	if _, err := n.conn.ExecContext(ctx, `PRAGMA synchronous = NORMAL`); err != nil {
		return err
	}
	version, err := n.formatOf(ctx)
	if err == nil && version < format {
		err = n.create(ctx)
	}
	if err != nil {
		return err
	}
	return n.read(ctx)
}

// dsn escapes the path so that no character of it is read as an option.
func dsn(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // for a drive letter
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String()
}
