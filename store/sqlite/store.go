package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"os"
	"runtime"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
	codes "modernc.org/sqlite/lib"
)

// store is a lock file: a table with a row for each name.
type store struct {
	path string
	name string // "" for sqlite: and the path
	id   string
	file os.FileInfo
	time timekeeper

	// turn is a mutex that can be waited for with a context.
	turn chan struct{}

	// turn guards the fields below.
	db     *sql.DB
	conn   *sql.Conn
	stmts  map[query]*sql.Stmt
	closed bool
}

// Swap writes a row in one transaction, unless another process has one that writes.
// There is no marker, and nobody is notified.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, next casnode.Row, _ []string) (done bool, err error) {
	if err := s.enter(ctx); err != nil {
		return false, unsent(err)
	}
	defer s.leave()
	unknown, err := s.transaction(func() (err error) {
		done, err = s.swap(seen.Row.Version, next, s.time.boot)
		return err
	})
	switch {
	case err == nil:
		return done, nil
	case code(err) == codes.SQLITE_BUSY:
		return false, nil
	case unknown:
		return false, explain(err)
	}
	return false, unsent(err)
}

// swap writes a row, if the one that is there has the version that was read, and
// the file is of the boot.
func (s *store) swap(version string, next casnode.Row, boot string) (done bool, err error) {
	err = s.each(swapName, []any{next.Name, next.Version, next.State, version, boot}, func(func(...any) error) error {
		done = true
		return nil
	})
	return done, err
}

// transaction runs do in a transaction that writes, if no other process has one.
// Before an error nothing is in
// the file, and there will be no commit: if the rollback fails too, the next begin
// fails and rolls back again. unknown says that the disk failed during the commit:
// others may see it or not.
func (s *store) transaction(do func() error) (unknown bool, err error) {
	if err := s.sameFile(); err != nil {
		return false, err
	}
	if err = s.exec(beginWrite); err == nil {
		err = do()
	}
	if err == nil {
		err = s.exec(commit)
		unknown = err != nil && code(err) != codes.SQLITE_BUSY
	}
	if err != nil {
		s.rollback()
	}
	return unknown, err
}

// Remove removes rows, and raises the floor: a fence that is forgotten binds on.
func (s *store) Remove(ctx context.Context, seen casnode.Snapshot, rows []casnode.Row) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	_, err := s.transaction(func() error {
		if _, err := s.snapshot(""); err != nil { // it checks the boot
			return err
		}
		err := s.exec(raiseFloor, int64(seen.Floor))
		for _, r := range rows {
			if err == nil {
				err = s.exec(deleteName, r.Name, r.Version)
			}
		}
		return err
	})
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
		all, err = s.rows(after, limit)
		return err
	})
	return all, err
}

func (s *store) rows(after string, limit int) (all []casnode.Row, err error) {
	err = s.each(selectNames, []any{after, limit}, func(scan func(...any) error) error {
		var r casnode.Row
		err := scan(&r.Name, &r.Version, &r.State)
		all = append(all, r)
		return err
	})
	return all, err
}

// look runs do, which reads by one statement.
func (s *store) look(ctx context.Context, do func() error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	err := s.sameFile()
	if err == nil {
		err = retry(ctx, do)
	}
	return explain(err)
}

// String returns the node's name: by default "sqlite:" and the absolute path of
// the file.
func (s *store) String() string { return cmp.Or(s.name, "sqlite:"+s.path) }

// Close closes the file.
func (s *store) Close() error {
	s.turn <- struct{}{}
	defer s.leave()
	if s.closed {
		return nil
	}
	s.closed = true
	for _, stmt := range s.stmts {
		stmt.Close()
	}
	var err error
	if s.conn != nil {
		err = s.conn.Close()
	}
	if s.db != nil {
		err = cmp.Or(err, s.db.Close())
	}
	return failed(s.path, err)
}

// enter waits for the mutex.
func (s *store) enter(ctx context.Context) error {
	// If both cases are ready, select takes either of them. A context that has
	// ended must never lead to an effect.
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.closed {
		s.leave()
		return errClosed
	}
	return nil
}

func (s *store) leave() { <-s.turn }

// sameFile checks that the path still leads to the open file, and no other path
// does. If it was replaced, we would use the old file alone while others use the
// new one.
func (s *store) sameFile() error {
	if s.file == nil || runtime.GOOS == "windows" { // an open file cannot be removed there
		return nil
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

// rollback ends a transaction, if there is one. Its error is ignored: there was
// no transaction, or the next begin returns the same error.
func (s *store) rollback() { _ = s.exec(rollback) }
