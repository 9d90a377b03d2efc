package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/redlatch/redlatch/store/casnode"
)

// statement is a text with parameters. Its name on a session on which it is
// prepared is made of the text: no other statement has it.
type statement struct{ name, types, text string }

// call is a statement with the values of its parameters. A write has those of sure, too:
// the server, and the limit for locks.
type call struct {
	statement
	values []string
	sure   [2]string
}

// kind says what a statement does: it reads, with the rank of a place or without, or it
// writes a row or the marker.
type kind struct{ read, rank, insert, marker, stamped, wakes, drop bool }

// kinds are all of them.
func kinds() []kind {
	all := []kind{{read: true}, {read: true, rank: true}}
	for i := range 32 {
		all = append(all, kind{insert: i&1 != 0, marker: i&2 != 0, stamped: i&4 != 0, wakes: i&8 != 0, drop: i&16 != 0})
	}
	return all
}

// statement returns a statement. The parameters of those that write are the name, the
// former version, the new version and state, the version of the marker, and the time;
// with wakes their channels and texts; and with a place that is dropped its ticket and
// waiter. State and name are hexadecimal.
func (s *store) statement(k kind) statement {
	rank, types := "0, 0", "(text)"
	if k.rank { // each row that is counted is a page that is read: one behind 64 is said to be 256th
		types = "(text, bigint, text)"
		rank = fmt.Sprintf(`(SELECT count(*) * CASE count(*) WHEN 64 THEN 4 ELSE 1 END
				FROM (SELECT FROM %[1]s WHERE name = decode($1, 'hex') AND (ticket, waiter) <= ($2::bigint, $3) LIMIT 64) r),
			EXISTS (SELECT 1 FROM %[1]s WHERE name = decode($1, 'hex') AND ticket = $2::bigint AND waiter = $3)::int`, s.places)
	}
	text := fmt.Sprintf(`SELECT %s, %s, l.version::text, encode(l.state, 'hex'), m.version::text, encode(m.state, 'hex'), (%s), %s
		FROM (SELECT 1) one LEFT JOIN %[5]s l ON l.name = decode($1, 'hex') LEFT JOIN %[5]s m ON m.name = ''`,
		now, server, s.firstText("$1", ""), rank, s.table)
	if !k.read {
		types, text = "(text, text, text, text, text, bigint", s.write(k)
		if k.wakes {
			types += ", text[], text[]"
		}
		if k.drop {
			types += ", bigint, text"
		}
		types += ")"
	}
	return named(types, text)
}

func named(types, text string) statement {
	sum := sha256.Sum256([]byte(types + text))
	return statement{"redlatch_" + hex.EncodeToString(sum[:16]), types, text}
}

// write returns the text of a Swap, or of a SwapStamped. It affects a row, or
// returns one for each wake, if it writes: one with the first places if it drops one. The server checks cheap conditions
// first, and all of them before it waits for the row's lock.
func (s *store) write(k kind) string {
	keep, state, same := "", "decode($4, 'hex')", sure
	if k.stamped {
		same += fmt.Sprintf(" AND %s BETWEEN $6::bigint AND $6::bigint + %d", began, casnode.Span.Microseconds())
		state = fmt.Sprintf("int8send(%s - $6::bigint) || %s", began, state)
	}
	if k.insert {
		keep = " FOR KEY SHARE"
	}
	if !k.marker {
		same += fmt.Sprintf(" AND coalesce((SELECT m.version FROM %s m WHERE m.name = ''%s), '') = $5", s.table, keep)
	}
	put := fmt.Sprintf(`UPDATE %s l SET version = $3, state = %s WHERE l.name = decode($1, 'hex') AND l.version = $2 AND %s`, s.table, state, same)
	if k.insert {
		put = fmt.Sprintf(`INSERT INTO %s (name, version, state) SELECT decode($1, 'hex'), $3, %s WHERE %s ON CONFLICT (name) DO NOTHING`, s.table, state, same)
	}
	if !k.wakes && !k.drop {
		return put
	}
	sent, drop := "1 FROM put", ""
	if k.wakes {
		sent = "pg_notify(c, w) FROM put, unnest($7::text[], $8::text[]) AS x (c, w)"
	}
	if k.drop {
		ticket := 7
		if k.wakes {
			ticket = 9
		}
		if !k.wakes {
			sent = "(" + s.firstText("$1", fmt.Sprintf(" AND NOT (p.ticket = $%d::bigint AND p.waiter = $%d)", ticket, ticket+1)) + ") FROM put"
		}
		drop = fmt.Sprintf(", gone AS (DELETE FROM %s p USING put WHERE p.name = decode($1, 'hex') AND p.ticket = $%d::bigint AND p.waiter = $%d)", s.places, ticket, ticket+1)
	}
	return fmt.Sprintf("WITH put AS (%s RETURNING 1)%s SELECT %s", put, drop, sent)
}

// preparedHere is the key of the session of a connection. Without it nothing is
// prepared there.
const preparedHere = "redlatch/prepared"

// session is one of our own, on the server itself.
type session struct {
	has map[string]bool // the names of the statements that are prepared
	// server identifies the server, as a literal. A session does not change its server,
	// and a primary does not change its timeline while it runs.
	server string
}

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
		c.CustomData()[preparedHere] = &session{has: map[string]bool{}}
	}
	return nil
}

// prepare prepares a statement on a session, if it is not.
func (h *session) prepare(ctx context.Context, c *pgconn.PgConn, st statement) error {
	if h.has[st.name] {
		return nil
	}
	if h.server == "" {
		// A plan for each call costs more than the call.
		rows, err := query(ctx, c, fmt.Sprintf("SELECT %s, set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_bitmapscan', 'off', false), set_config('lock_timeout', '%d', false), set_config('synchronous_commit', %s, false)", server, most.Milliseconds(), durable))
		if err != nil {
			return err
		}
		h.server = quoted(string(rows[0][0]))
	}
	// In one message, so that it is the same session. A replica may be promoted.
	_, err := query(ctx, c, fmt.Sprintf("SELECT 1 / (%s = %s AND NOT pg_is_in_recovery())::int; PREPARE %s %s AS %s",
		server, h.server, st.name, st.types, strings.NewReplacer(sure, "true", server, h.server).Replace(st.text)))
	if err != nil && !hasCode(err, "42P05") { // it is prepared
		return err
	}
	h.has[st.name] = true
	return nil
}

// run executes calls at once, each in a transaction of its own, and returns the results
// of those that are committed. Most of the time that a statement takes is for its plan,
// so it is prepared where it may be. There each call is a message, and all of them are
// sent together. A pooler may give the second one another session, so for it they are
// one message, of a call and of one that follows its commit.
func (s *store) run(ctx context.Context, calls ...call) ([]*pgconn.Result, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	c := conn.Conn().PgConn()
	here, _ := c.CustomData()[preparedHere].(*session)
	for i := 0; here != nil && i < len(calls); i++ {
		switch err = here.prepare(ctx, c, calls[i].statement); {
		case hasCode(err, "22012"): // another server
			delete(c.CustomData(), preparedHere)
			here = nil
		case err != nil:
			return nil, err
		case calls[i].sure[0] != "" && quoted(calls[i].sure[0]) != here.server:
			here = nil
		}
	}
	if here != nil {
		var sends []func(*pgproto3.Frontend)
		for _, x := range calls {
			sends = append(sends, x.send)
		}
		results, err := execute(ctx, c, sends...)
		if !hasCode(err, "26000") || len(results) > 0 {
			return results, err
		}
		delete(c.CustomData(), preparedHere) // it is gone: somebody else uses this session
	}
	if len(calls) == 1 {
		return execute(ctx, c, simple(calls[0].plain()))
	}
	results, err := execute(ctx, c, simple("BEGIN; "+calls[0].plain()+"; COMMIT; "+calls[1].plain()))
	if len(results) < 3 {
		return nil, err
	}
	return append(results[1:2], results[3:]...), err
}

// send executes a prepared statement. A write is a message of the simple protocol: see execute.
func (x call) send(f *pgproto3.Frontend) {
	if !strings.HasPrefix(x.text, "SELECT ") {
		simple("EXECUTE " + x.name + " ('" + strings.Join(x.values, "','") + "')")(f)
		return
	}
	values := strings.Join(x.values, "\x00") // no value has this byte
	f.SendBind(&pgproto3.Bind{PreparedStatement: x.name, Parameters: bytes.Split([]byte(values), []byte{0})})
	f.SendExecute(&pgproto3.Execute{})
	f.SendSync(&pgproto3.Sync{})
}

// plain returns the text with the values in the place of its parameters.
func (x call) plain() string {
	places := []string{"$server", quoted(x.sure[0]), "$limit", quoted(x.sure[1])}
	for i := len(x.values) - 1; i >= 0; i-- { // $10 before $1
		places = append(places, fmt.Sprintf("$%d", i+1), quoted(x.values[i]))
	}
	return strings.NewReplacer(places...).Replace(x.text)
}

// hasCode reports whether an error is the server's, with this code.
func hasCode(err error, code string) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == code
}
