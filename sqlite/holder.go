package sqlite

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

const (
	// ?1 name
	selectHolders query = `SELECT value, kind, slot, until, token FROM holder WHERE name = ?1 ORDER BY row`

	// ?1 name, ?2 value, ?3 kind, ?4 slot, ?5 until, ?6 token. A holder that is
	// there keeps its place among the others.
	upsertHolder query = `
		INSERT INTO holder (name, value, kind, slot, until, token) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
		ON CONFLICT (name, value) DO UPDATE
		SET kind = excluded.kind, slot = excluded.slot, until = excluded.until, token = excluded.token`

	// ?1 name, ?2 value
	deleteHolder query = `DELETE FROM holder WHERE name = ?1 AND value = ?2`

	// ?1 name, ?2 now
	deleteExpired query = `DELETE FROM holder WHERE name = ?1 AND until <= ?2`

	// ?1 name
	deleteHolders query = `DELETE FROM holder WHERE name = ?1`
)

// fileTime is a time on the file's clock, in the form that node.Holders has.
func fileTime(ns int64) time.Time { return time.Unix(0, ns) }

// loadHolders reads the readers, or the holders of slots.
func (t *tx) loadHolders() {
	t.each(selectHolders, []any{t.req.Name}, func(scan func(...any) error) error {
		h, err := scanHolder(scan)
		if !h.Until.After(fileTime(t.now)) {
			t.expired = true
			return err
		}
		t.holders = append(t.holders, h)
		return err
	})
}

// scanHolder reads a row of holder. What is before the holder's own columns goes
// to first.
func scanHolder(scan func(...any) error, first ...any) (node.Holder, error) {
	var h node.Holder
	var kind string
	var until, token int64
	var slot uint8
	if err := scan(append(first, &h.Value, &kind, &slot, &until, &token)...); err != nil {
		return h, err
	}
	share, err := parseKind(kind)
	share.Slot = slot
	h.Share, h.Until, h.Token = share, fileTime(until), node.Token(token)
	return h, err
}

func parseKind(kind string) (node.Share, error) {
	share, ok := node.ParseKind(kind)
	if !ok {
		return share, faultf("is damaged: it has the lock mode %q", kind)
	}
	return share, nil
}

// storeHolders writes what the request has changed: the holder of its value. It
// returns the latest expiry of all holders.
func (t *tx) storeHolders() (last int64) {
	if t.expired {
		t.exec(deleteExpired, t.req.Name, t.now)
	}
	// An exclusive request has changed nothing, but its value may be a reader's.
	if i := t.holders.Of(t.req.Value, node.Share{Mode: node.Shared}); i >= 0 {
		h := t.holders[i]
		t.exec(upsertHolder, t.req.Name, h.Value, h.Kind(), h.Slot, h.Until.UnixNano(), int64(h.Token))
	} else {
		t.exec(deleteHolder, t.req.Name, t.req.Value)
	}
	for _, h := range t.holders {
		last = max(last, h.Until.UnixNano())
	}
	return last
}

// listed returns holders with their expiries on the wall clock.
func listed(holders node.Holders, now int64, wall time.Time) []node.Holder {
	for i, h := range holders {
		holders[i].Until = wall.Add(h.Until.Sub(fileTime(now)))
	}
	return holders
}
