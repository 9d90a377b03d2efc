//go:build unix

package postgres_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
	"github.com/redlatch/redlatch/store/postgres"
)

var must = check.Must

var listed = node.Guard{Membership: "list", Nodes: "one", MaxTTL: 30 * time.Second, Window: time.Minute, Quarantine: 32 * time.Second}

func wanted(op node.Op, value string) node.Request {
	return node.Request{Op: op, Name: "job", Value: value, TTL: 30 * time.Second, Retention: time.Hour, Window: time.Minute,
		Token: node.Token(time.Now().UnixMicro()), Guard: &listed}
}

func mustBe(t testing.TB, n node.Node, req node.Request, status node.Status) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r, err := n.Do(ctx, req); err != nil || r.Status != status {
		t.Fatalf("%v by %q: %v, %v; want %v", req.Op, req.Value, r.Status, err, status)
	}
}

// pausedNode returns a node that is stopped once between a read and its write.
func pausedNode(t testing.TB, dsn string, between func(pool *pgxpool.Pool)) (*casnode.Node, *pgxpool.Pool) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	must(t, err)
	t.Cleanup(pool.Close)
	once := false
	n, err := postgres.OverPaused(pool, postgres.Options{Poll: true}, func() {
		if !once {
			once = true
			between(pool)
		}
	})
	must(t, err)
	return n, pool
}

// TestFailoverBetweenReadAndWriteGrantsNothing has a client read a row and stop.
// Another one gets the lock, on a primary that dies before its replica has that.
// The replica is promoted, and the first client goes on there.
func TestFailoverBetweenReadAndWriteGrantsNothing(t *testing.T) {
	for _, pooler := range []bool{false, true} {
		for _, used := range []bool{false, true} {
			name := map[bool]string{false: "direct", true: "behind a pooler"}[pooler] + map[bool]string{false: ", insert", true: ", update"}[used]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				primary := servertest.OwnPostgreSQL(t)
				proxy := servertest.NewProxy(t, primary)
				b, err := postgres.Open(primary.DSN(), &postgres.Options{Poll: true})
				must(t, err)
				t.Cleanup(func() { b.Close() })
				mustBe(t, b, node.Request{Op: node.OpMark, Mark: node.MarkFresh, Guard: &listed}, node.Granted)
				if used {
					mustBe(t, b, wanted(node.OpAcquire, "before"), node.Granted)
					mustBe(t, b, wanted(node.OpRelease, "before"), node.Granted)
				}
				replica, promote := follow(t, primary)
				caughtUp(t, primary, replica)
				dsn := primary.Through(proxy.Addr())
				if pooler {
					dsn = servertest.OwnPgBouncer(t, proxy.Addr()).DSN()
				}
				a, _ := pausedNode(t, dsn, func(pool *pgxpool.Pool) {
					stopFollowing(t, replica)
					mustBe(t, b, wanted(node.OpAcquire, "holder"), node.Granted)
					primary.Kill()
					promote()
					proxy.LeadTo(replica.Addr())
					proxy.Cut()
					// The pooler has found its connections broken.
					if pooler {
						until(t, databaseAt(t, dsn), `SELECT true`)
					} else {
						pool.Reset()
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r, err := a.Do(ctx, wanted(node.OpAcquire, "second"))
				if err != nil || r.Status != node.Quarantined {
					t.Errorf("the second holder: %v, %v; want quarantined", r.Status, err)
				}
			})
		}
	}
}

// TestFailoverBeforeAWriteWithoutAReadGrantsNothing has the same happen to a client
// that remembers the row, and does not read it again.
func TestFailoverBeforeAWriteWithoutAReadGrantsNothing(t *testing.T) {
	primary := servertest.OwnPostgreSQL(t)
	proxy := servertest.NewProxy(t, primary)
	b, err := postgres.Open(primary.DSN(), &postgres.Options{Poll: true})
	must(t, err)
	t.Cleanup(func() { b.Close() })
	mustBe(t, b, node.Request{Op: node.OpMark, Mark: node.MarkFresh, Guard: &listed}, node.Granted)
	pool, err := pgxpool.New(t.Context(), primary.Through(proxy.Addr()))
	must(t, err)
	t.Cleanup(pool.Close)
	pauses, between := 0, func() {}
	a, err := postgres.OverPaused(pool, postgres.Options{Poll: true}, func() {
		pauses++
		between()
	})
	must(t, err)
	mustBe(t, a, wanted(node.OpAcquire, "before"), node.Granted)
	mustBe(t, a, wanted(node.OpRelease, "before"), node.Granted)
	replica, promote := follow(t, primary)
	caughtUp(t, primary, replica)
	stopFollowing(t, replica)
	pauses, between = 0, func() {
		if pauses > 1 {
			return
		}
		mustBe(t, b, wanted(node.OpAcquire, "holder"), node.Granted)
		primary.Kill()
		promote()
		proxy.LeadTo(replica.Addr())
		proxy.Cut()
		pool.Reset()
	}
	// On a busy machine the preparations may take longer than a node remembers.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r, err := a.Do(ctx, wanted(node.OpAcquire, "second")); err != nil || r.Status != node.Quarantined {
		t.Errorf("the second holder: %v, %v; want quarantined", r.Status, err)
	}
}

// caughtUp waits until the replica has what the primary has.
func caughtUp(t testing.TB, primary, replica *servertest.OwnDatabase) {
	t.Helper()
	from, to := operatorOf(t, primary), operatorOf(t, replica)
	var at string
	must(t, from.QueryRow(`SELECT pg_current_wal_flush_lsn()::text`).Scan(&at))
	until(t, to, `SELECT pg_last_wal_replay_lsn() >= '`+at+`'`)
}

// stopFollowing has the replica get nothing more of its primary.
func stopFollowing(t testing.TB, replica *servertest.OwnDatabase) {
	t.Helper()
	db := operatorOf(t, replica)
	for _, text := range []string{`ALTER SYSTEM SET primary_conninfo = ''`, `SELECT pg_reload_conf()`} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	until(t, db, `SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)`)
}

func operatorOf(t testing.TB, server *servertest.OwnDatabase) *sql.DB {
	t.Helper()
	return databaseAt(t, server.DSN())
}

// databaseAt returns connections to a database.
func databaseAt(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// until waits until a query returns true.
func until(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var yes bool
		err := db.QueryRow(query).Scan(&yes)
		if err == nil && yes {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v, %v", query, yes, err)
		}
	}
}

const blockedText = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock')`

// TestWriteThatIsLateEndsBeforeTheNextMarkerIsTrusted has a write wait for the
// lock of its row, while the membership is changed. The write comes after the new
// marker. What it grants has expired when that marker's quarantine is over.
func TestWriteThatIsLateEndsBeforeTheNextMarkerIsTrusted(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	db := operatorOf(t, server)
	b, err := postgres.Open(server.DSN(), &postgres.Options{Poll: true})
	must(t, err)
	defer b.Close()
	mustBe(t, b, node.Request{Op: node.OpMark, Mark: node.MarkFresh, Guard: &listed}, node.Granted)
	mustBe(t, b, wanted(node.OpAcquire, "before"), node.Granted)
	mustBe(t, b, wanted(node.OpRelease, "before"), node.Granted)
	tx, err := db.Begin()
	must(t, err)
	defer tx.Rollback()
	if _, err := tx.Exec(`SELECT FROM redlatch_lock WHERE name = 'job' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	late := make(chan node.Reply, 1)
	go func() {
		r, err := b.Do(t.Context(), wanted(node.OpAcquire, "late"))
		if err != nil {
			t.Error(err)
		}
		late <- r
	}()
	until(t, db, blockedText)
	next := listed
	next.Membership, next.Nodes = "next", "two"
	marked, err := b.Do(t.Context(), node.Request{Op: node.OpMark, Mark: node.MarkReplace, Guard: &next})
	if err != nil || marked.Status != node.Quarantined {
		t.Fatalf("the next marker: %v, %v", marked.Status, err)
	}
	time.Sleep(2 * time.Second)
	tx.Rollback()
	r := <-late
	l, err := b.Look(t.Context(), "job")
	must(t, err)
	t.Logf("the late write: %v; holders %v; the quarantine ends at %v", r.Status, l.Holders, marked.TrustedFrom)
	for _, h := range l.Holders {
		if h.Until.After(marked.TrustedFrom) {
			t.Errorf("a lock lives until %v, and the next marker is trusted from %v on", h.Until, marked.TrustedFrom)
		}
	}
	other := wanted(node.OpAcquire, "other")
	other.Guard = &next
	mustBe(t, b, other, node.Quarantined)
}

// TestMarkerOutlivesAnInsertThatWaits has an insert wait for another transaction
// with the same name. Meanwhile the marker cannot be deleted: the rows that are
// deleted with it may be those of a holder.
func TestMarkerOutlivesAnInsertThatWaits(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	db := operatorOf(t, server)
	b, err := postgres.Open(server.DSN(), &postgres.Options{Poll: true})
	must(t, err)
	defer b.Close()
	mustBe(t, b, node.Request{Op: node.OpMark, Mark: node.MarkFresh, Guard: &listed}, node.Granted)
	tx, err := db.Begin()
	must(t, err)
	defer tx.Rollback()
	if _, err := tx.Exec(`INSERT INTO redlatch_lock VALUES ('job', 'x', '')`); err != nil {
		t.Fatal(err)
	}
	answer := make(chan node.Reply, 1)
	go func() {
		r, err := b.Do(t.Context(), wanted(node.OpAcquire, "waits"))
		if err != nil {
			t.Error(err)
		}
		answer <- r
	}()
	until(t, db, blockedText)
	for _, text := range []string{`DELETE FROM redlatch_lock WHERE name = ''`, `TRUNCATE redlatch_lock`} {
		_, err := db.Exec(`SET lock_timeout = 300; ` + text + `; RESET lock_timeout`)
		if err == nil || !strings.Contains(err.Error(), "55P03") {
			t.Errorf("%s: %v; want it to wait", text, err)
		}
	}
	tx.Rollback()
	if r := <-answer; r.Status != node.Granted {
		t.Errorf("the insert: %v", r.Status)
	}
}

// TestMarkerThatChangesBetweenReadAndWriteIsNoticed changes or removes the marker
// while a client is stopped between a read and its write.
func TestMarkerThatChangesBetweenReadAndWriteIsNoticed(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	db := operatorOf(t, server)
	b, err := postgres.Open(server.DSN(), &postgres.Options{Poll: true})
	must(t, err)
	defer b.Close()
	for _, used := range []bool{false, true} {
		for name, change := range map[string]func(){
			"replaced": func() {
				next := listed
				next.Membership, next.Nodes = "next", "two"
				next.Generation++
				b.Do(t.Context(), node.Request{Op: node.OpMark, Mark: node.MarkReplace, Guard: &next})
			},
			"deleted":  func() { db.Exec(`DELETE FROM redlatch_lock WHERE name = ''`) },
			"emptied":  func() { db.Exec(`TRUNCATE redlatch_lock`) },
			"no table": func() { db.Exec(`DROP TABLE redlatch_lock`) },
		} {
			mustBe(t, b, node.Request{Op: node.OpMark, Mark: node.MarkRead, Guard: &listed}, node.Absent)
			mustBe(t, b, node.Request{Op: node.OpMark, Mark: node.MarkFresh, Guard: &listed}, node.Granted)
			if used {
				mustBe(t, b, wanted(node.OpAcquire, "before"), node.Granted)
				mustBe(t, b, wanted(node.OpRelease, "before"), node.Granted)
			}
			a, _ := pausedNode(t, server.DSN(), func(*pgxpool.Pool) { change() })
			if r, err := a.Do(t.Context(), wanted(node.OpAcquire, "second")); err != nil || r.Status != node.Quarantined && r.Status != node.Misconfigured {
				t.Errorf("%s, a row before %v: %v, %v; want it refused", name, used, r.Status, err)
			}
			db.Exec(`DROP TABLE IF EXISTS redlatch_lock`)
		}
	}
}
