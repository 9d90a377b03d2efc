package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redlatch/redlatch/node/casnode"
)

// statement is a text with parameters. Its name on a session on which it is
// prepared is made of the text: no other statement has it.
type statement struct{ name, types, text string }

// kind says what a statement does: it reads, or it writes a row or the marker.
type kind struct{ read, insert, marker, stamped, wakes bool }

// kinds are all of them.
func kinds() []kind {
	all := []kind{{read: true}}
	for i := range 16 {
		all = append(all, kind{insert: i&1 != 0, marker: i&2 != 0, stamped: i&4 != 0, wakes: i&8 != 0})
	}
	return all
}

// statement returns a statement. The parameters of those that write are the server,
// the version of the marker, the time, the limit for locks, the new version, state
// and name, the former version, and the wakes.
func (s *store) statement(k kind) statement {
	types, text := "(bytea)", `SELECT `+now+`, `+server+`, l.version::text, encode(l.state, 'hex'), m.version::text, encode(m.state, 'hex')
		FROM (SELECT 1) one LEFT JOIN `+s.table+` l ON l.name = $1 LEFT JOIN `+s.table+` m ON m.name = ''`
	if !k.read {
		types, text = "(text, text, bigint, text, text, bytea, bytea, text, text[])", s.write(k)
	}
	sum := sha256.Sum256([]byte(types + text))
	return statement{"redlatch_" + hex.EncodeToString(sum[:16]), types, text}
}

// write returns the text of a Swap, or of a SwapStamped.
func (s *store) write(k kind) string {
	same, state, keep, sent := "", "$6", "", "SELECT count(*) FROM put"
	if k.stamped {
		same = fmt.Sprintf(" AND %s BETWEEN $3 AND $3 + %d", began, casnode.Span.Microseconds())
		state = "int8send(same.late) || $6"
	}
	put := fmt.Sprintf(`UPDATE %s l SET version = $5, state = %s FROM same WHERE l.name = $7 AND l.version = $8 RETURNING 1`, s.table, state)
	if k.insert {
		keep = " FOR KEY SHARE"
		put = fmt.Sprintf(`INSERT INTO %s (name, version, state) SELECT $7, $5, %s FROM same ON CONFLICT (name) DO NOTHING RETURNING 1`, s.table, state)
	}
	if !k.marker {
		same += fmt.Sprintf(" AND coalesce((SELECT m.version FROM %s m WHERE m.name = ''%s), '') = $2", s.table, keep)
	}
	if k.wakes {
		sent = fmt.Sprintf(`, sent AS (SELECT pg_notify('%s', w) FROM put, unnest($9::text[]) w)
			SELECT (SELECT count(*) FROM put), (SELECT count(*) FROM sent)`, s.channel)
	}
	return fmt.Sprintf(`WITH same AS MATERIALIZED (SELECT %s - $3 AS late WHERE %s
		AND set_config('lock_timeout', $4, true) IS NOT NULL AND %s = $1%s), put AS (%s) %s`, began, durable, server, same, put, sent)
}

// preparedHere is the key of the names of the statements that are prepared on a
// connection. Without it nothing is prepared there.
const preparedHere = "redlatch/prepared"

// mayPrepare finds out whether a connection of our own leads to the server itself.
// Behind a pooler a session is somebody else's next: nothing is left there.
func mayPrepare(ctx context.Context, conn *pgx.Conn) error {
	c := conn.PgConn()
	rows, err := query(ctx, c, "SELECT inet_client_port()")
	if err != nil {
		return err
	}
	// The server sees the port that we connect from, unless a pooler is between.
	if _, ours, err := net.SplitHostPort(c.Conn().LocalAddr().String()); err == nil && string(rows[0][0]) == ours {
		c.CustomData()[preparedHere] = map[string]bool{}
	}
	return nil
}

// run executes a statement with literals in the place of its parameters. Most of the
// time that it takes is for its plan, so it is prepared where it may be.
func (s *store) run(ctx context.Context, st statement, literals ...string) ([][][]byte, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	c := conn.Conn().PgConn()
	here, may := c.CustomData()[preparedHere].(map[string]bool)
	if may && !here[st.name] {
		if _, err := query(ctx, c, "PREPARE "+st.name+" "+st.types+" AS "+st.text); err != nil && !hasCode(err, "42P05") { // it is prepared
			return nil, err
		}
		here[st.name] = true
	}
	if may {
		rows, err := query(ctx, c, "EXECUTE "+st.name+" ("+strings.Join(literals, ", ")+")")
		if !hasCode(err, "26000") {
			return rows, err
		}
		// It is gone, and nothing was executed: somebody else uses this session.
		delete(c.CustomData(), preparedHere)
	}
	return query(ctx, c, st.with(literals...))
}

// with returns the text with literals in the place of its parameters.
func (st statement) with(literals ...string) string {
	var places []string
	for i, literal := range literals {
		places = append(places, fmt.Sprintf("$%d", i+1), literal)
	}
	return strings.NewReplacer(places...).Replace(st.text)
}

// hasCode reports whether an error is the server's, with this code.
func hasCode(err error, code string) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == code
}
