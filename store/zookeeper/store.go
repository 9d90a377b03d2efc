package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

// store is the znodes below the root.
type store struct {
	link
	root, name string
	acl        []zk.ACL

	remembered sync.Mutex // guards places
	places     map[string]place

	inbox inbox

	between func() // a test's, between the readings of a Read; nil for none
}

var (
	_ casnode.Preparer = (*store)(nil)
	_ casnode.Sweeper  = (*store)(nil)
	_ casnode.Hearer   = (*store)(nil)
	_ casnode.Timers   = (*store)(nil)
)

func newStore(servers []string, conn *zk.Conn, o Options) *store {
	return &store{link: link{servers: servers, opts: o, conn: conn}, root: o.Root, name: o.Name, acl: o.acl(), places: map[string]place{}}
}

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

// znode is what is stored under a path.
type znode struct {
	data []byte
	stat *zk.Stat // nil if there is none
}

// zxid is that of the last change.
func (z znode) zxid() int64 {
	if z.stat == nil {
		return 0
	}
	return z.stat.Mzxid
}

func get(conn *zk.Conn, path string) (z znode, err error) {
	if z.data, z.stat, err = conn.Get(path); errors.Is(err, zk.ErrNoNode) {
		return znode{}, nil
	}
	return z, err
}

// place is where a snapshot was read: the versions of its znodes.
type place struct {
	server  string
	row     stored
	marker  stored
	floor   node.Token
	floorAt int32
	changed int64 // the zxid of the last change of any of its znodes
}

// stored is a row and its znode.
type stored struct {
	casnode.Row
	book book
	at   int32 // the znode's version
	zxid int64 // of its last change; 0 if there is no row
	// timed says that it had timers when it was read; some may have ended since.
	timed bool
}

// Read returns the row of a name. Its parts are of one moment, unless a Swap will check
// that or the answer is for display.
func (s *store) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	p, err := s.read(ctx, name)
	if err != nil {
		return casnode.Snapshot{}, explain(err)
	}
	s.remember(name, p)
	return casnode.Snapshot{Row: p.row.Row, Marker: p.marker.Row, Server: p.server, KeepsFences: true, Floor: p.floor}, nil
}

// read reads in one session, and repeats it if there were two: the second one may be on
// a server that lags behind what the first has seen.
func (s *store) read(ctx context.Context, name string) (p place, err error) {
	for {
		conn, err := s.session(ctx)
		if err != nil {
			return p, err
		}
		p, err = within(ctx, func() (place, error) {
			session := conn.SessionID()
			p, err := s.readIn(conn, name, callOf(ctx))
			if err == nil && (session == 0 || conn.SessionID() != session) {
				err = errMoved
			}
			return p, err
		})
		if !again(err) || ctx.Err() != nil {
			return p, err
		}
	}
}

// readIn reads in a session.
func (s *store) readIn(conn *zk.Conn, name string, c *call) (p place, err error) {
	if c.probe || c.display {
		// What is read beside sync may be old. The row is not older than the rest: a
		// row that was removed after it was read has changed the floor, too.
		sync := func() error { _, err := conn.Sync(s.root); return err }
		if c.probe && !c.refused {
			sync = nil // the server may be up to date, and the Swap finds out
		}
		return s.collect(conn, name, sync)
	}
	// A quorum has executed this write, and with it all that was acknowledged before.
	stat, err := conn.Set(s.root+wakesPath, nil, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return p, s.unprepared(s.root + wakesPath)
	}
	if err != nil {
		return p, err
	}
	for last := (place{}); ; last = p {
		if p, err = s.collect(conn, name, nil); err != nil || p.asOf(stat.Mzxid) || p.same(last) {
			return p, err
		}
	}
}

// asOf reports whether all is as it was at a zxid before it was read. A row that is
// missing may have been removed since then, and the floor have been read before that;
// timers may have been dropped.
func (p place) asOf(zxid int64) bool {
	return p.changed < zxid && p.row.zxid != 0 && !p.row.timed && !p.marker.timed
}

// same reports whether all is as it was at some moment between the readings of two
// places: it was the same in both. A row that was there in between has left a trace in
// the floor.
func (p place) same(q place) bool {
	return p.server == q.server && p.row.zxid == q.row.zxid && p.marker.zxid == q.marker.zxid && p.floorAt == q.floorAt
}

// collect reads the znodes, those of all names first. beside is called meanwhile.
func (s *store) collect(conn *zk.Conn, name string, beside func() error) (p place, err error) {
	var floor, marker znode
	var identities []string
	var stat *zk.Stat
	if beside == nil {
		beside = func() error { return nil }
	}
	err = all(beside,
		func() (err error) { floor, err = get(conn, s.root+floorPath); return err },
		func() (err error) { marker, err = get(conn, s.root+markerPath); return err },
		func() (err error) {
			if identities, stat, err = conn.Children(s.root + identityPath); errors.Is(err, zk.ErrNoNode) {
				err = nil
			}
			return err
		})
	switch {
	case err != nil:
		return p, err
	case floor.stat == nil || len(floor.data) != 8:
		return p, s.unprepared(s.root + floorPath)
	case marker.stat == nil:
		return p, s.unprepared(s.root + markerPath)
	case len(identities) == 0:
		return p, s.unprepared(s.root + identityPath)
	case len(identities) > 1:
		return p, errIdentities
	}
	p.server, p.floor, p.floorAt = identities[0], node.Token(binary.BigEndian.Uint64(floor.data)), floor.stat.Version
	p.changed = max(stat.Pzxid, floor.zxid(), marker.zxid())
	if p.marker, err = s.stored(conn, casnode.MarkerName, marker); err != nil {
		return p, err
	}
	if p.row = p.marker; name == casnode.MarkerName {
		return p, nil
	}
	if s.between != nil {
		s.between()
	}
	z, err := get(conn, s.row(name))
	if err == nil {
		p.row, err = s.stored(conn, name, z)
	}
	p.changed = max(p.changed, z.zxid())
	return p, err
}

// stored returns the row of a znode, and the timers that run: those that ran when the
// znode was read, as far as they do now.
func (s *store) stored(conn *zk.Conn, name string, z znode) (r stored, err error) {
	r.Name = name
	if z.stat == nil {
		return r, nil
	}
	r.Version, r.book, r.State = decode(z.data)
	r.at, r.zxid = z.stat.Version, z.stat.Mzxid
	if z.stat.NumChildren == 0 {
		return r, nil
	}
	r.timed = true
	if r.Timers, _, err = conn.Children(s.row(name)); errors.Is(err, zk.ErrNoNode) {
		r.Timers, err = nil, nil // it was removed, and its timers before
	}
	return r, err
}

// mostPlaces is how many places are remembered.
const mostPlaces = 1024

// remember notes where a row was read or written, for the Swap that follows. To forget
// it costs a reading.
func (s *store) remember(name string, p place) {
	s.remembered.Lock()
	defer s.remembered.Unlock()
	if len(s.places) >= mostPlaces {
		clear(s.places)
	}
	s.places[name] = p
}

// place returns where a snapshot was read; false if it is no longer so. A version is
// written once, so the znodes are the same if the versions are.
func (s *store) place(ctx context.Context, name string, seen casnode.Snapshot) (p place, ok bool, err error) {
	is := func(p place) bool {
		return p.server == seen.Server && p.row.Version == seen.Row.Version && p.floor == seen.Floor &&
			(name == casnode.MarkerName || p.marker.Version == seen.Marker.Version)
	}
	s.remembered.Lock()
	p, ok = s.places[name]
	s.remembered.Unlock()
	if ok && is(p) {
		return p, true, nil
	}
	p, err = s.read((&call{display: true}).in(ctx), name)
	return p, err == nil && is(p), err
}

// Swap writes a row by a multi, which checks identity, floor, marker and row.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, row casnode.Row, wakes []string) (bool, error) {
	p, ok, err := s.place(ctx, row.Name, seen)
	if err != nil {
		return false, unsent(explain(err))
	}
	c := callOf(ctx)
	if !ok {
		c.refused = true
		return false, nil
	}
	conn, err := s.session(ctx)
	if err != nil {
		return false, err
	}
	names := p.row.book
	if row.Name == c.row() {
		names = names.with(c.req, s.inbox.id())
	}
	data := encode(row.Version, names, row.State)
	ops := []any{
		&zk.CheckVersionRequest{Path: s.root + identityPath + "/" + seen.Server, Version: -1},
		&zk.CheckVersionRequest{Path: s.root + floorPath, Version: p.floorAt},
	}
	if row.Name != casnode.MarkerName {
		ops = append(ops, &zk.CheckVersionRequest{Path: s.root + markerPath, Version: p.marker.at})
	}
	if p.row.Version == "" {
		ops = append(ops, &zk.CreateRequest{Path: s.row(row.Name), Data: data, Acl: s.acl})
	} else {
		ops = append(ops, &zk.SetDataRequest{Path: s.row(row.Name), Data: data, Version: p.row.at})
	}
	size := len(data) + len(s.row(row.Name)) + 1024
	if size > s.opts.MaxBuffer {
		return false, fmt.Errorf("the row of %q has %d bytes, %w (%w)", row.Name, len(data), ErrTooLarge, node.ErrUnsent)
	}
	mail, err := s.address(ctx, conn, p.row.book, wakes)
	if err != nil {
		return false, unsent(explain(err))
	}
	for i, l := range mail { // those that do not fit are lost
		if size += 2*len(l.path) + 200; size > s.opts.MaxBuffer {
			mail = mail[:i]
			break
		}
	}
	done, err := s.multi(ctx, conn, ops, mail)
	if done && row.Name != casnode.MarkerName {
		// The next Swap may come without a Read. A znode that is written has the next
		// version, and a new one has version 0.
		p.row = stored{Row: row, book: names, at: p.row.at + 1}
		if seen.Row.Version == "" {
			p.row.at = 0
		}
		s.remember(row.Name, p)
	}
	if row.Name == c.row() {
		c.swapped, c.refused = done, c.refused || !done
	}
	return done, err
}

// unsent is the error of a Swap that failed before it was sent.
func unsent(err error) error {
	if errors.Is(err, node.ErrUnsent) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
}

// multi executes operations, and sends mail with them, as far as it can be delivered.
// It reports whether the operations were executed.
func (s *store) multi(ctx context.Context, conn *zk.Conn, ops []any, mail []letter) (bool, error) {
	for {
		every := slices.Clone(ops)
		for _, l := range mail {
			every = append(every, &zk.CheckVersionRequest{Path: path.Dir(l.path) + "/" + owner, Version: -1}, &zk.CreateRequest{Path: l.path, Acl: s.acl, Flags: zk.FlagEphemeralSequential})
		}
		results, err := within(ctx, func() ([]zk.MultiResponse, error) { return conn.Multi(every...) })
		if err == nil {
			return true, nil
		}
		failed := slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
		if failed < 0 { // it was not executed, or nobody knows
			return false, explain(err)
		}
		if failed >= len(ops) {
			gone := path.Dir(mail[(failed-len(ops))/2].path) // the inbox of a process that has ended
			go clearInbox(conn, gone)
			mail = slices.DeleteFunc(slices.Clone(mail), func(l letter) bool { return path.Dir(l.path) == gone })
			continue
		}
		if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNotEmpty) {
			return false, nil
		}
		return false, unsent(explain(err)) // the server has refused it
	}
}

// Prepare creates what is missing, all of it in one step. If anything is missing, the
// store may have forgotten rows, and versions begin at 0 again: so there is a new
// identity, too.
func (s *store) Prepare(ctx context.Context) error {
	for {
		conn, err := s.session(ctx)
		if err != nil {
			return err
		}
		done, err := within(ctx, func() (bool, error) { return s.prepare(conn) })
		if (done || err != nil) && !again(err) || ctx.Err() != nil {
			return explain(err)
		}
	}
}

// prepare reports whether all is there. If not, it is to be called again.
func (s *store) prepare(conn *zk.Conn) (bool, error) {
	if _, err := conn.Create(s.root, nil, 0, s.acl); errors.Is(err, zk.ErrNoNode) {
		return false, fmt.Errorf("%s: %w", path.Dir(s.root), ErrNoParent)
	} else if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		// Who may use the root need not have the right to create it.
		if exists, _, failed := conn.Exists(s.root); failed != nil || !exists {
			return false, err
		}
	}
	if _, err := conn.Sync(s.root); err != nil {
		return false, err
	}
	there, _, err := conn.Children(s.root)
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
		markerPath: encode(rand.Text(), nil, casnode.Unmarked()),
	} {
		if !slices.Contains(there, below[1:]) {
			create(below, data)
		}
	}
	if len(missing) == 0 && len(identities) == 1 {
		return true, nil
	}
	for _, old := range identities {
		missing = append(missing, &zk.DeleteRequest{Path: s.root + identityPath + "/" + old, Version: -1})
	}
	create(identityPath+"/"+rand.Text(), nil)
	_, err = conn.Multi(missing...)
	if errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) {
		err = nil // another process was faster
	}
	return false, err
}
