package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/store/casnode"
)

// store is the znodes below the root.
type store struct {
	link
	root, name string
	acl        []zk.ACL

	remembered sync.Mutex // guards the fields below
	sights     map[string]sight
	common     sight // of the marker, the identity and the floor
	commonAt   time.Time
	heard      map[string]stored    // where rows are that came with a wake, by their versions
	own        map[[2]string]string // places that may be there, by name and waiter, as far as they are known
	lived      map[string]int64     // the session at the last call of Live, by process

	ready atomic.Bool // all was there a moment ago: the next Prepare has nothing to do

	between func() // a test's, between the readings of a Read; nil for none
}

var (
	_ casnode.Preparer = (*store)(nil)
	_ casnode.Sweeper  = (*store)(nil)
	_ casnode.Hearer   = (*store)(nil)
	_ casnode.Timers   = (*store)(nil)
	_ casnode.Placer   = (*store)(nil)
)

func (s *store) String() string { return s.name }
func (s *store) Close() error   { return s.close() }

// The znodes below the root.
const (
	rowsPath     = "/r"
	markerPath   = "/m"
	identityPath = "/i"
	floorPath    = "/f"
	wakesPath    = "/w"
)

// row returns the path of the row of a name.
func (s *store) row(name string) string {
	if name == casnode.MarkerName {
		return s.root + markerPath
	}
	return s.root + rowsPath + "/" + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// Prepare creates what is missing, all of it in one step. If anything is missing, the
// store may have forgotten rows, and versions begin at 0 again: so there is a new
// identity, too.
func (s *store) Prepare(ctx context.Context) error {
	for {
		done, err := inSession(ctx, &s.link, s.prepare)
		if done || err != nil || ctx.Err() != nil {
			return explain(err)
		}
	}
}

// there reports whether all is there, in one round trip. It may be what was there: a write
// checks that.
func (s *store) there(conn *zk.Conn) bool {
	var below []string
	_, err := s.collect(conn, casnode.MarkerName, func() (err error) { below, _, err = conn.Children(s.root); return err })
	return err == nil && slices.Contains(below, rowsPath[1:]) && slices.Contains(below, wakesPath[1:])
}

// prepare reports whether all is there. If not, it is to be called again.
func (s *store) prepare(conn *zk.Conn) (bool, error) {
	if s.ready.Swap(false) || s.there(conn) {
		return true, nil
	}
	if _, err := conn.Sync(s.root); err != nil {
		return false, err
	}
	there, _, err := conn.Children(s.root)
	if errors.Is(err, zk.ErrNoNode) {
		if _, err = conn.Create(s.root, nil, 0, s.acl); errors.Is(err, zk.ErrNoNode) {
			return false, fmt.Errorf("%s: %w", path.Dir(s.root), ErrNoParent)
		}
		if errors.Is(err, zk.ErrNodeExists) {
			err = nil
		}
	}
	if err != nil {
		return false, err
	}
	identities, missing := []string(nil), []any(nil)
	create := func(below string, data []byte) {
		missing = append(missing, &zk.CreateRequest{Path: s.root + below, Data: data, Acl: s.acl})
	}
	if slices.Contains(there, identityPath[1:]) {
		if identities, _, err = conn.Children(s.root + identityPath); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return false, err
		}
	} else {
		create(identityPath, nil)
	}
	for below, data := range map[string][]byte{
		rowsPath: nil, wakesPath: nil, floorPath: make([]byte, 8),
		markerPath: encode(rand.Text(), casnode.Unmarked()),
	} {
		if !slices.Contains(there, below[1:]) {
			create(below, data)
		}
	}
	if len(missing) == 0 && len(identities) == 1 {
		return true, nil
	}
	for _, id := range identities {
		missing = append(missing, &zk.DeleteRequest{Path: s.root + identityPath + "/" + id, Version: -1})
	}
	create(identityPath+"/"+rand.Text(), nil)
	_, err = conn.Multi(missing...)
	if errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) {
		err = nil // another process was faster
	}
	return false, err
}
