package sqlite

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node"
)

// createMark is the table of occurrences that are done. The row with an empty
// occurrence says since when the name's marks are remembered. Its times are of
// the wall clock, in microseconds, so that marks outlive a reboot.
const createMark = `CREATE TABLE mark (
	name       TEXT NOT NULL,
	occurrence TEXT NOT NULL,
	since      INTEGER NOT NULL,
	until      INTEGER NOT NULL,
	PRIMARY KEY (name, occurrence)
) WITHOUT ROWID`

const (
	// ?1 name, ?2 occurrence, ?3 now, ?4 until. A mark whose time is over is
	// written anew.
	putMark query = `
		INSERT INTO mark (name, occurrence, since, until) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT DO UPDATE SET since = iif(until > ?3, since, ?3), until = max(until, ?4)`

	// ?1 name, ?2 occurrence, ?3 now
	selectMark query = `SELECT since FROM mark WHERE name = ?1 AND occurrence = ?2 AND until > ?3`

	// ?1 name, ?2 now, ?3 how many
	selectMarks query = `
		SELECT occurrence, until FROM mark WHERE name = ?1 AND until > ?2 AND occurrence <> ''
		ORDER BY until DESC, occurrence DESC LIMIT ?3`

	// ?1 now
	deleteDeadMarks query = `DELETE FROM mark WHERE until <= ?1`
)

// remember executes an OpRemember or OpRecall, up to the commit.
func (t *tx) remember() (node.Reply, error) {
	now, until := t.wall.UnixMicro(), t.wall.Add(min(t.req.Retention, farFuture)).UnixMicro()
	t.exec(putMark, t.req.Name, "", now, until)
	if t.req.Op == node.OpRemember {
		t.exec(putMark, t.req.Name, t.req.Occurrence, now, until)
		t.exec(deleteDeadMarks, now)
	}
	var since, done int64
	t.scan(selectMark, []any{t.req.Name, "", now}, &since)
	t.scan(selectMark, []any{t.req.Name, t.req.Occurrence, now}, &done)
	reply := node.Reply{Status: node.Absent, Since: time.UnixMicro(since), Now: t.wall}
	if done != 0 {
		reply.Status = node.Granted
	}
	return reply, t.err
}

// listMarks adds the marks to a listing.
func (t *tx) listMarks(l *node.Listing) {
	now := t.wall.UnixMicro()
	var since int64
	if t.scan(selectMark, []any{l.Name, "", now}, &since) {
		l.Since = time.UnixMicro(since)
	}
	t.each(selectMarks, []any{l.Name, now, node.MaxMarks}, func(scan func(...any) error) error {
		var m node.DoneMark
		var until int64
		err := scan(&m.Occurrence, &until)
		m.Until = time.UnixMicro(until)
		l.Marks = append(l.Marks, m)
		return err
	})
}

// checkOccurrence refuses an occurrence that is not valid.
func checkOccurrence(req node.Request) error {
	marks := req.Op == node.OpRemember || req.Op == node.OpRecall
	if marks && (req.Occurrence == "" || len(req.Occurrence) > node.MaxOccurrence) {
		return faultf("was asked about the occurrence %.20q of %d bytes: %s", req.Occurrence, len(req.Occurrence),
			fmt.Sprintf("it must have 1 to %d", node.MaxOccurrence))
	}
	return nil
}
