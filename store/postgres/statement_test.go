//go:build unix

package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// TestStatementsArePreparedOnceOnASessionOfOurOwn has connections to the server
// itself, and through something that may share them with others.
func TestStatementsArePreparedOnceOnASessionOfOurOwn(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	proxy := servertest.NewProxy(t, server)
	for name, c := range map[string]struct {
		dsn      string
		prepares bool
	}{
		"direct":  {server.DSN() + "&synchronous_commit=off", true},
		"a proxy": {server.Through(proxy.Addr()), false},
		"pooler":  {servertest.OwnPgBouncer(t, server.Addr()).DSN(), false},
	} {
		n := openAt(t, c.dsn+"&pool_max_conns=1", "")
		for i := range 3 { // the second name is inserted without a read
			useAll(t, n, fmt.Sprint(name, i))
		}
		first := postgres.Prepared(t, n)
		if durable := string(postgres.Execute(t, n, "SHOW synchronous_commit")[0][0]) != "off"; c.prepares != (first > 0) || c.prepares && !durable {
			t.Errorf("%s: %d statements are prepared, durable %v", name, first, durable)
		}
		useAll(t, n, name+" again")
		if again := postgres.Prepared(t, n); again != first {
			t.Errorf("%s: %d statements are prepared, and then %d", name, first, again)
		}
	}
}

// TestSessionThatForgetsItsStatementsGoesOn has somebody else reset the session,
// and alter the table.
func TestSessionThatForgetsItsStatementsGoesOn(t *testing.T) {
	n := openAt(t, servertest.PostgreSQL(t)+"&pool_max_conns=1", "forgotten")
	for _, text := range []string{
		`SELECT 1`, `ALTER TABLE forgotten ADD COLUMN more int`, `ALTER TABLE forgotten ALTER version TYPE varchar(64)`,
		`ALTER TABLE forgotten ALTER version TYPE text`, `DROP TABLE forgotten`, `DISCARD ALL`,
	} {
		useAll(t, n, "before "+text)
		postgres.Execute(t, n, text)
		useAll(t, n, text)
	}
	if left := postgres.Prepared(t, n); left != 0 {
		t.Errorf("%d statements are prepared on a session that others reset", left)
	}
}

// TestSessionOfAnotherServerIsNotPrepared has a pooler change the server between two
// messages.
func TestSessionOfAnotherServerIsNotPrepared(t *testing.T) {
	n := openAt(t, servertest.PostgreSQL(t)+"&pool_max_conns=1", "mistaken")
	mustBe(t, n, node.Request{Op: node.OpInspect, Name: "job"}, node.Absent)
	postgres.Execute(t, n, "DEALLOCATE ALL")
	postgres.Mistake(t, n)
	useAll(t, n, "job")
	if count := postgres.Prepared(t, n); count != 0 {
		t.Errorf("%d statements are prepared", count)
	}
}

// TestSessionOfAReplicaGoesOnWhenItIsPromoted has a node whose session began before that.
func TestSessionOfAReplicaGoesOnWhenItIsPromoted(t *testing.T) {
	primary := servertest.OwnPostgreSQL(t)
	useAll(t, openAt(t, primary.DSN(), ""), "job")
	replica, _, promote := follow(t, primary)
	n := openAt(t, replica.DSN()+"&pool_max_conns=1", "")
	_, err := n.Do(t.Context(), wanted(node.OpInspect, ""))
	promote()
	poll.Until(t, "the new primary answers", func() bool {
		_, later := n.Do(t.Context(), wanted(node.OpInspect, ""))
		return err != nil && later == nil
	})
}

// TestSecondOfTwoThatAreSentTogetherFollowsTheCommit executes two statements, prepared
// and not. After an error in one of them the session can be used again.
func TestSecondOfTwoThatAreSentTogetherFollowsTheCommit(t *testing.T) {
	const transaction, fails = "SELECT pg_current_xact_id()::text || $1", "SELECT ($1 || 'no number')::int"
	for where, dsn := range servers {
		n := openAt(t, dsn(t)+"&pool_max_conns=1", "together")
		useAll(t, n, "a")
		pid := func() string { return string(postgres.Execute(t, n, "SELECT pg_backend_pid()")[0][0]) }
		before := pid()
		for _, forgets := range []bool{false, where == "direct"} {
			for texts, committed := range map[[2]string]int{{transaction, transaction}: 2, {transaction, fails}: 1, {fails, transaction}: 0} {
				found, err := postgres.Together(t.Context(), n, "", texts[:]...)
				if len(found) != committed || (err == nil) != (committed == 2) || committed == 2 && found[0] == found[1] {
					t.Errorf("%s: %q: %q, %v; want %d results, of a transaction each", where, texts, found, err, committed)
				}
				if forgets {
					postgres.Execute(t, n, "DISCARD ALL")
				}
			}
		}
		if after := pid(); after != before && where == "direct" {
			t.Errorf("%s: after an error the connection was closed", where)
		}
	}
}

// TestWhatWasNotSentIsNotSentLater has a caller leave before two statements are sent.
func TestWhatWasNotSentIsNotSentLater(t *testing.T) {
	n := openAt(t, servertest.PostgreSQL(t)+"&pool_max_conns=1", "unsent")
	postgres.Execute(t, n, "CREATE TABLE IF NOT EXISTS unsent_text (name text)")
	gone, leave := context.WithCancel(t.Context())
	leave()
	err := postgres.Query(gone, n, "INSERT INTO unsent_text VALUES ('late')", "SELECT 1")
	if found := string(postgres.Execute(t, n, "SELECT count(*) FROM unsent_text")[0][0]); err == nil || found != "0" {
		t.Errorf("%v, and %s rows were written later", err, found)
	}
}

// TestTableThatIsRewrittenIsNotTakenForEmpty rewrites the table while a holder's
// extension waits for it. The node of the extension has not written the row, so it
// reads first.
func TestTableThatIsRewrittenIsNotTakenForEmpty(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	db := databaseAt(t, dsn)
	const table = "rewritten"
	for name, texts := range map[string][]string{
		"a lock alone": {`LOCK TABLE rewritten IN ACCESS EXCLUSIVE MODE`},
		"SET UNLOGGED": {`ALTER TABLE rewritten SET UNLOGGED`},
		"TRUNCATE and INSERT of the same rows": {
			`CREATE TEMP TABLE rows AS SELECT * FROM rewritten`, `TRUNCATE rewritten`, `INSERT INTO rewritten SELECT * FROM rows`, `DROP TABLE rows`,
		},
	} {
		for _, repeatable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, repeatable read in a given pool %v", name, repeatable), func(t *testing.T) {
				exec(t, db, `DROP TABLE IF EXISTS rewritten`)
				holder := openAt(t, dsn, table)
				markListed(t, holder)
				mustBe(t, holder, wanted(node.OpAcquire, "holder"), node.Granted)
				n := openAt(t, dsn+"&pool_max_conns=1", table)
				if repeatable {
					pool, err := pgxpool.New(t.Context(), dsn+"&default_transaction_isolation=repeatable%20read&pool_max_conns=1")
					must(t, err)
					defer pool.Close()
					n, err = postgres.From(pool, &postgres.Options{Poll: true, Table: table})
					must(t, err)
				}
				mustBe(t, n, node.Request{Op: node.OpInspect, Name: "job"}, node.Held)
				if !repeatable && postgres.Prepared(t, n) == 0 {
					t.Fatal("the read is not prepared: this test shows nothing")
				}
				tx := begin(t, db, texts...)
				extended := answer(t, n, wanted(node.OpExtend, "holder"))
				until(t, db, blockedText)
				must(t, tx.Commit())
				if r := <-extended; r.Status != node.Granted {
					t.Errorf("the extension is %v, and the holder's row is there", r.Status)
				}
			})
		}
	}
}

// TestWritesAreMessagesOfTheSimpleProtocol: of the extended protocol, one whose Sync never
// comes would keep its row locked.
func TestWritesAreMessagesOfTheSimpleProtocol(t *testing.T) {
	for text, as := range postgres.SentAs() {
		if writes := regexp.MustCompile("INSERT|UPDATE|DELETE").MatchString(text); writes != (as == 'Q') {
			t.Errorf("sent as %c: %s", as, text)
		}
	}
}

// TestReleaseIsWrittenThoughTheLookAfterItConflicts has the look, which is a serializable
// transaction of its own, meet another one that has read what a third one wrote.
func TestReleaseIsWrittenThoughTheLookAfterItConflicts(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	db := databaseAt(t, server.DSN())
	n := openAt(t, server.DSN()+"&default_transaction_isolation=serializable&pool_max_conns=1", "")
	useAll(t, n, "job")
	req := node.Request{Op: node.OpAcquire, Name: "job", Value: "v", TTL: time.Minute, Fencing: node.Fencing{Retention: time.Minute, Window: time.Minute}}
	_, err := n.Do(t.Context(), req)
	must(t, err)
	exec(t, db, `CREATE TABLE x (a int)`, `INSERT INTO x VALUES (1)`, `INSERT INTO redlatch_lock_place (name, ticket, waiter, process, lapses) VALUES ('job', 5, '0-0-0-AAAA', 'dead', 0)`)
	rival, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable})
	must(t, err)
	for i, text := range []string{`SELECT * FROM x`, `UPDATE redlatch_lock_place SET lapses = 1`, `LOCK TABLE redlatch_lock_place IN ACCESS EXCLUSIVE MODE`} {
		if i == 2 {
			exec(t, db, `BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE x SET a = 2; COMMIT`)
		}
		_, err := rival.ExecContext(t.Context(), text)
		must(t, err)
	}
	req.Op = node.OpRelease
	released := answer(t, n, req)
	until(t, db, blockedText)
	must(t, rival.Commit())
	if r := <-released; r.Status != node.Granted {
		t.Errorf("the release was answered with %v", r.Status)
	}
}

// TestCommitBeforeABrokenAnswerIsNotUnsent has a server refuse the second statement of a
// message, and go before it says that the first one is committed.
func TestCommitBeforeABrokenAnswerIsNotUnsent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			server := pgproto3.NewBackend(conn, conn)
			server.ReceiveStartupMessage()
			server.Send(&pgproto3.AuthenticationOk{})
			server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			server.Flush()
			server.Receive()
			for _, tag := range []string{"BEGIN", "INSERT 0 1", "COMMIT"} {
				server.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
			}
			server.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42501"})
			server.Flush()
			conn.Close()
		}
	}()
	pool, err := pgxpool.New(t.Context(), "postgres://user@"+listener.Addr().String()+"/lock?sslmode=disable")
	must(t, err)
	defer pool.Close()
	n, err := postgres.From(pool, &postgres.Options{Poll: true})
	must(t, err)
	if _, err := postgres.Together(t.Context(), n, "", "a write", "a look"); err == nil || postgres.Unsent(err) {
		t.Errorf("the answer to a write that may be committed: %v", err)
	}
	if postgres.Unsent(&pgconn.PgError{Code: "25P04"}) { // the session has lasted for too long
		t.Error("a server that ends the session after the write is taken to have written nothing")
	}
}
