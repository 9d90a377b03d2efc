//go:build unix

package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/mysql"
)

// TestRowThatIsKeptUsesFewSessions has another transaction keep a row, while many
// requests for it are given up. Neither the pool grows, nor what goes on at the
// server.
func TestRowThatIsKeptUsesFewSessions(t *testing.T) {
	server := servertest.OwnMariaDB(t)
	exec(t, server.DSN(), "CREATE USER plain", "GRANT ALL ON test.* TO plain")
	n := opened(t, strings.Replace(server.DSN(), "root@", "plain@", 1))
	ctx := context.Background()
	if _, err := n.Do(ctx, acquire("one")); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", server.DSN())
	must(t, err)
	defer db.Close()
	tx, err := db.Begin()
	must(t, err)
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT 1 FROM redlatch_lock WHERE name = 'job' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	sessions := func() (n int) {
		must(t, db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'plain'").Scan(&n))
		return n
	}
	most := 0
	for range 5 {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				req := acquire("one")
				req.Op = node.OpExtend
				if _, err := n.Do(ctx, req); err == nil {
					t.Error("a request whose row is kept has an answer")
				}
			})
		}
		all.Wait()
		most = max(most, sessions())
	}
	// As many again may be given up, and end at the server's limit.
	if most > 3*mysql.PoolSize {
		t.Errorf("%d sessions at once, with a pool of %d", most, mysql.PoolSize)
	}
	for end := time.Now().Add(30 * time.Second); sessions() > mysql.PoolSize; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d sessions are left, with a pool of %d", sessions(), mysql.PoolSize)
		}
	}
}

// TestWaitForAConnectionIsNotTheServersSilence has a pool without a free
// connection.
func TestWaitForAConnectionIsNotTheServersSilence(t *testing.T) {
	n, db := over(t, servertest.MariaDB(t), 1)
	c, err := db.Conn(context.Background())
	must(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = n.Do(ctx, acquire("one"))
	if !errors.Is(err, node.ErrUnsent) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "all 1 connections of this program's pool are in use") {
		t.Errorf("without a free connection: %v", err)
	}
}

// TestErrorsOfTheServerSayWhetherAWriteHadAnEffect goes through errors by their
// numbers: an interrupted statement may have been committed.
func TestErrorsOfTheServerSayWhetherAWriteHadAnEffect(t *testing.T) {
	for number, unsent := range map[uint16]bool{
		1205: true, 1290: true, 1146: true, 1142: true, 1021: true,
		1053: false, 1180: false, 1317: false, 1927: false, 1969: false, 3024: false,
	} {
		err := mysql.Explain(fmt.Errorf("in a statement: %w", &driver.MySQLError{Number: number}))
		if errors.Is(err, node.ErrUnsent) != unsent {
			t.Errorf("%d had certainly no effect: %v, want %v", number, !unsent, unsent)
		}
	}
}
