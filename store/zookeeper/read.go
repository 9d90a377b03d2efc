package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

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

// sight is where a snapshot was read: the versions of its znodes.
type sight struct {
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
	queue []ticket // in order
	at    int32    // the znode's version
	zxid  int64    // of its last change; 0 if there is none
	moved int64    // the zxid of the last change of its children, if it had some
	many  int      // how many children there are, if they were not read
}

// Read returns the row of a name. Its parts are of one moment, unless a Swap will check
// that or the answer is for display.
func (s *store) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	p, err := s.read(ctx, name)
	if err != nil {
		return casnode.Snapshot{}, explain(err)
	}
	return s.snapshot(name, p, ""), nil
}

// snapshot returns what was seen, with the rank of a waiter, and remembers where.
func (s *store) snapshot(name string, p sight, waiter string) casnode.Snapshot {
	s.remember(name, p)
	return casnode.Snapshot{Row: p.row.Row, Marker: p.marker.Row, Server: p.server, KeepsFences: true, Floor: p.floor,
		Places: p.row.places(casnode.FirstPlaces), Rank: p.row.rank(waiter)}
}

func (s *store) read(ctx context.Context, name string) (sight, error) {
	return inSession(ctx, &s.link, func(conn *zk.Conn) (sight, error) { return s.readIn(conn, name, callOf(ctx)) })
}

// readIn reads in a session.
func (s *store) readIn(conn *zk.Conn, name string, c *call) (p sight, err error) {
	if c.probe || c.display {
		// What is read beside sync may be old. The row is not older than the rest: a
		// row that was removed after it was read has changed the floor, too.
		if !c.probe || c.refused {
			return s.collect(conn, name, func() error { _, err := conn.Sync(s.root); return err })
		}
		// The server may be up to date, and what is the same for all names as it was a
		// moment ago. The Swap finds out.
		s.remembered.Lock()
		common, at := s.common, s.commonAt
		s.remembered.Unlock()
		if name == casnode.MarkerName || at.IsZero() || time.Since(at) > commonAge {
			return s.collect(conn, name, nil)
		}
		return s.readRow(conn, name, common, c.brief)
	}
	zxid, err := s.catchUp(conn)
	if err != nil {
		return p, err
	}
	for last := (sight{}); ; last = p {
		switch p, err = s.collect(conn, name, nil); {
		case err != nil || p.asOf(zxid):
			return p, err
		case p.server == last.server && p.marker.zxid == last.marker.zxid && p.floorAt == last.floorAt:
			// All but the row was the same before and after the last row was read. A row
			// that was removed in between has left a trace in the floor.
			return last, nil
		}
	}
}

// catchUp writes. A quorum executes that after all that was acknowledged before. It
// returns the zxid of that write.
func (s *store) catchUp(conn *zk.Conn) (int64, error) {
	stat, err := conn.Set(s.root+wakesPath, nil, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return 0, s.unprepared(s.root + wakesPath)
	}
	if err != nil {
		return 0, err
	}
	return stat.Mzxid, nil
}

// asOf reports whether all is as it was at a zxid before it was read. A row that is
// missing may have been removed since then, and the floor have been read before that.
func (p sight) asOf(zxid int64) bool { return p.changed < zxid && p.row.zxid != 0 }

// collect reads the znodes, those of all names first. beside is called meanwhile.
func (s *store) collect(conn *zk.Conn, name string, beside func() error) (p sight, err error) {
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
	if p.marker, err = s.stored(conn, casnode.MarkerName, marker, false); err != nil {
		return p, err
	}
	s.remembered.Lock()
	s.common, s.commonAt = p, time.Now()
	s.remembered.Unlock()
	if p.row = p.marker; name == casnode.MarkerName {
		return p, nil
	}
	return s.readRow(conn, name, p, false)
}

// readRow reads the row of a name, and adds it to what is the same for all names.
func (s *store) readRow(conn *zk.Conn, name string, p sight, brief bool) (sight, error) {
	if s.between != nil {
		s.between()
	}
	z, err := get(conn, s.row(name))
	if err == nil {
		p.row, err = s.stored(conn, name, z, brief)
	}
	p.changed = max(p.changed, z.zxid(), p.row.moved, p.marker.moved)
	return p, err
}

// stored returns the row of a znode, its places, and the timers that run: those that ran
// when the znode was read, as far as they do now. If it is to be brief, it only counts
// them where there are many.
func (s *store) stored(conn *zk.Conn, name string, z znode, brief bool) (r stored, err error) {
	switch {
	case z.stat == nil || z.stat.NumChildren == 0:
	case brief && z.stat.NumChildren > inSight:
		r.many = int(z.stat.NumChildren)
	default:
		if r, err = s.list(conn, name); err != nil {
			return r, err
		}
		r.moved = max(r.moved, z.stat.Pzxid)
	}
	if r.Name = name; z.stat == nil {
		return r, nil
	}
	r.Version, r.State = decode(z.data)
	r.at, r.zxid = z.stat.Version, z.stat.Mzxid
	return r, nil
}

// mostSights is how many sights are remembered. commonAge is for how long that is of use
// which is the same for all names.
const (
	mostSights = 1024
	commonAge  = 10 * time.Second
)

// remember notes where a row was read or written, for the Swap that follows. To forget
// it costs a reading.
func (s *store) remember(name string, p sight) {
	s.remembered.Lock()
	defer s.remembered.Unlock()
	if len(s.sights) >= mostSights {
		clear(s.sights)
	}
	s.sights[name] = p
}

// sight returns where a snapshot was read; false if it is no longer so. A version is
// written once, so the znodes are the same if the versions are.
func (s *store) sight(ctx context.Context, name string, seen casnode.Snapshot) (p sight, ok bool, err error) {
	is := func(p sight) bool {
		return p.server == seen.Server && p.row.Version == seen.Row.Version && p.floor == seen.Floor &&
			(name == casnode.MarkerName || p.marker.Version == seen.Marker.Version)
	}
	s.remembered.Lock()
	p, ok = s.sights[name]
	if r, heard := s.heard[seen.Row.Version]; ok && heard {
		delete(s.heard, seen.Row.Version)
		p.row = r
		p.row.Row = seen.Row
	}
	s.remembered.Unlock()
	if ok && is(p) {
		return p, true, nil
	}
	p, err = s.read((&call{display: true}).in(ctx), name)
	return p, err == nil && is(p), err
}
