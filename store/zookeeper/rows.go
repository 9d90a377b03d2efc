package zookeeper

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/store/casnode"
)

// A znode's data is a row: the format, the version with its length before it, and the
// state. In the former format a list of entries came before the state, each of which was
// bookSize bytes long.
const (
	format, former = 2, 1
	bookSize       = 16
)

func encode(version string, state []byte) []byte {
	data := make([]byte, 0, 2+len(version)+len(state))
	data = append(data, format, byte(len(version)))
	return append(append(data, version...), state...)
}

// decode returns what encode was called with. What it cannot read becomes a state that
// casnode reports as damaged.
func decode(data []byte) (version string, state []byte) {
	if bytes.Equal(data, noRow) {
		return "", nil
	}
	damaged := append([]byte{0xff}, data...)
	if len(data) < 2 || data[0] != format && data[0] != former || len(data) < 2+int(data[1]) || data[1] == 0 {
		return "damaged", damaged
	}
	version, state = string(data[2:2+data[1]]), data[2+data[1]:]
	if data[0] == former {
		entries, size := binary.Uvarint(state)
		if size <= 0 || entries > uint64(len(state)-size)/bookSize {
			return "damaged", damaged
		}
		state = state[size+bookSize*int(entries):]
	}
	return version, state
}

// Scan reads the names of all rows, since ZooKeeper has no pages, and then some rows.
func (s *store) Scan(ctx context.Context, after string, limit int) ([]casnode.Row, error) {
	rows, err := inSession(ctx, &s.link, func(conn *zk.Conn) ([]casnode.Row, error) { return s.scan(ctx, conn, after, limit) })
	return rows, explain(err)
}

// advance lets the server advance to what was acknowledged before.
func (s *store) advance(ctx context.Context, conn *zk.Conn) (err error) {
	if c := callOf(ctx); c.probe || c.display {
		_, err = conn.Sync(s.root)
	} else {
		_, err = s.catchUp(conn)
	}
	return err
}

// names returns the names of the rows behind a name, in order.
func (s *store) names(ctx context.Context, conn *zk.Conn, after string) (names []string, err error) {
	err = s.advance(ctx, conn)
	var children []string
	if err == nil {
		children, _, err = conn.Children(s.root + rowsPath)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil, s.unprepared(s.root + rowsPath)
	}
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		if name, err := base64.RawURLEncoding.DecodeString(child); err == nil && string(name) > after {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

func (s *store) scan(ctx context.Context, conn *zk.Conn, after string, limit int) (rows []casnode.Row, err error) {
	names, err := s.names(ctx, conn, after)
	if err != nil {
		return nil, err
	}
	for len(names) > 0 && len(rows) < limit && ctx.Err() == nil {
		some := names[:min(limit-len(rows), len(names))]
		names = names[len(some):]
		znodes, err := s.getAll(conn, some)
		if err != nil {
			return nil, err
		}
		for i, z := range znodes {
			if z.stat == nil {
				continue // it was removed meanwhile
			}
			r := casnode.Row{Name: some[i]}
			if r.Version, r.State = decode(z.data); r.Version != "" {
				rows = append(rows, r)
			} else if z.stat.NumChildren == 0 { // nobody waits any more
				go conn.Delete(s.row(r.Name), z.stat.Version)
			}
		}
	}
	return rows, ctx.Err()
}

// getAll reads the znodes of rows, a few at once.
func (s *store) getAll(conn *zk.Conn, names []string) ([]znode, error) {
	znodes := make([]znode, len(names))
	for from := 0; from < len(names); from += 16 {
		var reads []func() error
		for i := from; i < min(from+16, len(names)); i++ {
			reads = append(reads, func() (err error) { znodes[i], err = get(conn, s.row(names[i])); return err })
		}
		if err := all(reads...); err != nil {
			return nil, err
		}
	}
	return znodes, nil
}

// Remove removes rows in one step, if they are as they were read, and writes the floor
// with it. A row with a timer or a
// place stays.
func (s *store) Remove(ctx context.Context, seen casnode.Snapshot, rows []casnode.Row) error {
	conn, err := s.session(ctx)
	if err != nil {
		return err
	}
	ops, err := within(ctx, func() ([]any, error) { return s.removal(conn, seen, rows) })
	if err == nil && len(ops) > 0 {
		_, err = s.multi(ctx, conn, ops, "")
	}
	return explain(err)
}

// removal returns the operations that remove rows; none if there is nothing to do.
func (s *store) removal(conn *zk.Conn, seen casnode.Snapshot, rows []casnode.Row) (ops []any, err error) {
	// The floor is read before the rows: it changes if one of them is removed and
	// written anew.
	floor, err := get(conn, s.root+floorPath)
	if err != nil || floor.stat == nil || len(floor.data) != 8 {
		return nil, err
	}
	session := conn.SessionID()
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Name
	}
	znodes, err := s.getAll(conn, names)
	if err != nil || conn.SessionID() != session {
		return nil, err
	}
	size := 0
	for i, z := range znodes {
		if z.stat == nil || z.stat.NumChildren > 0 {
			continue
		}
		if version, _ := decode(z.data); version == rows[i].Version {
			ops = append(ops, &zk.DeleteRequest{Path: s.row(names[i]), Version: z.stat.Version})
		}
		if size += len(s.row(names[i])) + 64; size > s.opts.MaxBuffer/2 {
			break
		}
	}
	if len(ops) == 0 {
		return nil, nil
	}
	raised := max(uint64(seen.Floor), binary.BigEndian.Uint64(floor.data))
	return append([]any{
		&zk.CheckVersionRequest{Path: s.root + identityPath + "/" + seen.Server, Version: -1},
		&zk.SetDataRequest{Path: s.root + floorPath, Data: binary.BigEndian.AppendUint64(nil, raised), Version: floor.stat.Version},
	}, ops...), nil
}

// path names a child of a row.
func (s *store) timer(name, id string) string { return fmt.Sprintf("%s/%s", s.row(name), id) }
