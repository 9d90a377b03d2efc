package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/registry"
	"github.com/redlatch/redlatch/store/casnode"
	_ "modernc.org/sqlite" // the driver
)

// openLimit limits the wait for other processes that open or close the file at
// the same time. Each needs milliseconds.
const openLimit = 10 * time.Second

func init() {
	registry.Register("sqlite", "github.com/redlatch/redlatch/store/sqlite", func(address string) (node.Node, error) { return Open(address, nil) })
}

// Options are the settings of a node. The zero value works.
type Options struct {
	// Name is what errors and logs call the node, and its name in a membership.
	// Defaults to sqlite: and the absolute path of the file.
	Name string
}

// Open returns a node for the lock file of an address, sqlite:FILE, or at a
// path. The address sqlite: is for the file of this user, at DefaultPath. Open
// creates a missing file, readable by this user only. It creates the folder of
// DefaultPath alone: if another one is missing, the path may be wrong, or a disk is
// not mounted.
func Open(address string, opts *Options) (*Node, error) {
	path := strings.TrimPrefix(address, "sqlite:")
	if strings.HasPrefix(path, "///") {
		path = path[2:]
	}
	if path == "" {
		var err error
		if path, err = DefaultPath(); err != nil {
			return nil, err
		}
	}
	n, err := open(path, systemTime())
	if err == nil {
		n.store.name = optional.Value(opts).Name
	}
	return n, err
}

func open(path string, k timekeeper) (*Node, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, failed(path, err)
	}
	isNew, err := prepare(abs)
	if err != nil {
		return nil, failed(abs, err)
	}
	db, err := sql.Open("sqlite", dsn(abs))
	if err != nil {
		return nil, failed(abs, err)
	}
	// A second connection would contend with the first for the file.
	db.SetMaxOpenConns(1)
	s := &store{path: abs, time: k, db: db, stmts: map[query]*sql.Stmt{}}
	ctx, cancel := context.WithTimeout(context.Background(), openLimit)
	defer cancel()
	if err := s.open(ctx, isNew); err != nil {
		s.Close()
		return nil, failed(abs, err)
	}
	return &Node{casnode.New(s, nil), s}, nil
}

// prepare creates the default folder, and reports whether the file does not exist yet.
// SQLite keeps its log and its locks beside the path, so a file with two paths
// would have two of each. Symbolic links are resolved.
//
// It does not open the file: see the caveat in the package comment.
func prepare(path string) (isNew bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return false, errIsFolder
	case err == nil && hardLinked(info):
		return false, errLinked
	case err == nil && mountPoint(path):
		return false, errMounted
	case err == nil:
		return false, nil
	case !errors.Is(err, os.ErrNotExist):
		return false, err
	}
	folder := filepath.Dir(path)
	if own, err := DefaultPath(); err == nil && path == own {
		return true, os.MkdirAll(folder, 0o700)
	}
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		return true, faultf("there is no folder %s: create it, or correct the path", folder)
	}
	return true, nil
}

func (s *store) open(ctx context.Context, isNew bool) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if isNew {
		// Before there is any data. The files that SQLite puts beside it get
		// the same mode.
		if err := os.Chmod(s.path, 0o600); err != nil {
			return err
		}
	}
	// Every step may find the file busy, the first one too: other processes may
	// be creating the file, or be the last to close it.
	if err := retry(ctx, func() error { return s.setUp(ctx, conn) }); err != nil {
		return err
	}
	s.file, err = os.Stat(s.path)
	return err
}

func (s *store) setUp(ctx context.Context, conn *sql.Conn) error {
	// With a write-ahead log this syncs when the log is folded in, not on every
	// grant. The package comment says what a power failure can lose.
	if _, err := conn.ExecContext(ctx, `PRAGMA synchronous = NORMAL`); err != nil {
		return err
	}
	blank, err := isNew(ctx, conn)
	if err == nil && blank {
		err = s.create(ctx, conn)
	}
	if err != nil {
		return err
	}
	return s.adopt(ctx, conn)
}

// dsn escapes the path so that no character of it is read as an option.
func dsn(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // for a drive letter
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String()
}
