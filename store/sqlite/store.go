package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
	codes "modernc.org/sqlite/lib"
)

// store is a lock file: a table with a row for each name.
type store struct {
	path string
	name string // "" for sqlite: and the path
	id   string
	file os.FileInfo
	time timekeeper

	db *sql.DB // one connection

	mu    sync.Mutex // guards stmts
	stmts map[query]*sql.Stmt
}

// Swap writes a row in one statement, unless another process is writing. There is no
// marker, and nobody is notified.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (done bool, present casnode.Snapshot, err error) {
	if err := s.usable(ctx); err != nil {
		return false, present, unsent(err)
	}
	args := []any{w.Row.Name, w.Row.Version, w.Row.State, seen.Row.Version, s.time.boot, int64(seen.Floor)}
	err = s.each(swapName, args, func(func(...any) error) error {
		done = true
		return nil
	})
	switch code(err) {
	case codes.SQLITE_BUSY:
		return false, present, nil
	case codes.SQLITE_IOERR: // if the disk failed during the commit, others may see it or not
		return false, present, explain(err)
	}
	if err != nil {
		return false, present, unsent(err)
	}
	return done, present, nil
}

// Remove removes rows. Before that it raises the floor: a fence that is forgotten
// binds on.
func (s *store) Remove(ctx context.Context, seen casnode.Snapshot, rows []casnode.Row) error {
	err := s.usable(ctx)
	if err == nil {
		err = s.exec(raiseFloor, int64(seen.Floor), s.time.boot)
	}
	for _, r := range rows {
		if err == nil {
			err = s.exec(deleteName, r.Name, r.Version, s.time.boot)
		}
	}
	return err
}

// snapshot reads the row of a name, and the clocks.
func (s *store) snapshot(name string) (casnode.Snapshot, error) {
	var boot string
	var floor int64
	var version sql.NullString
	seen := casnode.Snapshot{Row: casnode.Row{Name: name}, Server: s.id}
	err := s.each(selectName, []any{name}, func(scan func(...any) error) error {
		return scan(&boot, &floor, &version, &seen.Row.State)
	})
	switch {
	case err != nil:
		return seen, err
	case boot != s.time.boot:
		return seen, errOtherBoot
	}
	seen.Row.Version = version.String
	s.clocks(&seen)
	seen.KeepsFences, seen.Floor = true, node.Token(floor)
	return seen, nil
}

// clocks puts the clocks into a snapshot, in whole microseconds.
func (s *store) clocks(seen *casnode.Snapshot) {
	seen.Now = s.time.wall().Truncate(time.Microsecond)
	if s.time.boot != "" {
		seen.Offset = time.Duration(seen.Now.UnixMicro()-s.time.elapsed()/1000) * time.Microsecond
	}
}

// Read returns the row of a name.
func (s *store) Read(ctx context.Context, name string) (seen casnode.Snapshot, err error) {
	err = s.look(ctx, func() (err error) {
		seen, err = s.snapshot(name)
		return err
	})
	return seen, err
}

// Scan returns rows in the order of their names.
func (s *store) Scan(ctx context.Context, after string, limit int) (all []casnode.Row, err error) {
	err = s.look(ctx, func() error {
		all = nil
		return s.each(selectNames, []any{after, limit}, func(scan func(...any) error) error {
			var r casnode.Row
			err := scan(&r.Name, &r.Version, &r.State)
			all = append(all, r)
			return err
		})
	})
	return all, err
}

// look runs do, which reads by one statement.
func (s *store) look(ctx context.Context, do func() error) error {
	err := s.usable(ctx)
	if err == nil {
		err = retry(ctx, do)
	}
	return explain(err)
}

// String returns the node's name: by default "sqlite:" and the absolute path of
// the file.
func (s *store) String() string { return cmp.Or(s.name, "sqlite:"+s.path) }

// Close closes the file.
func (s *store) Close() error { return failed(s.path, s.db.Close()) }

// usable checks that the context has not ended, that the path still leads to the
// open file, and that no other path does. If it was replaced, we would use the old
// file alone while others use the new one.
func (s *store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil || runtime.GOOS == "windows" { // an open file cannot be removed there
		return err
	}
	info, err := os.Stat(s.path)
	if err != nil || !os.SameFile(info, s.file) {
		return errReplaced
	}
	if hardLinked(info) {
		return errLinked
	}
	return nil
}
