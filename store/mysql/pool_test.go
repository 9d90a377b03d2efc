//go:build unix

package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/mysql"
)

// TestRowThatIsKeptUsesFewSessions has another transaction keep a row, while many
// requests for it are given up. Neither the pool grows, nor what goes on at the
// server.
func TestRowThatIsKeptUsesFewSessions(t *testing.T) { onBoth(t, rowIsKept) }

func rowIsKept(t *testing.T, p product) {
	server := p.own(t)
	exec(t, server.DSN(), "CREATE USER plain")
	grant(t, server.DSN(), "plain")
	n := opened(t, strings.Replace(server.DSN(), "root@", "plain@", 1))
	granted(t, n, acquire("one"))
	db := operator(t, server.DSN())
	begin(t, db, "SELECT 1 FROM redlatch_lock WHERE name = 'job' FOR UPDATE")
	sessions := func() (n int) {
		must(t, db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'plain'").Scan(&n))
		return n
	}
	most := 0
	for range 5 {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
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
	// As many again may be given up, and end at the server's limit. MySQL has them
	// wait for longer than these callers do.
	if p.name == "MariaDB" && most > 3*mysql.PoolSize {
		t.Errorf("%d sessions at once, with a pool of %d", most, mysql.PoolSize)
	}
	for end := time.Now().Add(30 * time.Second); sessions() > mysql.PoolSize; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d sessions are left, with a pool of %d", sessions(), mysql.PoolSize)
		}
	}
}

// TestReleaseWaitsForItsTurn has the only connection of a pool be in use. What a turn
// is worth is tested in virtual time in package casnode.
func TestReleaseWaitsForItsTurn(t *testing.T) {
	n, db := over(t, servertest.MariaDB(t), 1)
	var releases []node.Request
	for _, name := range []string{"turn", "next turn"} {
		req := acquire("one")
		req.Name = name
		granted(t, n, req)
		req.Op = node.OpRelease
		releases = append(releases, req)
	}
	c, err := db.Conn(t.Context())
	must(t, err)
	answers := make(chan error, len(releases))
	for _, req := range releases {
		go func() {
			_, err := n.Do(t.Context(), req)
			answers <- err
		}()
	}
	poll.Until(t, "one of them waits for its turn", func() bool { return n.Queued() == 1 })
	must(t, c.Close())
	for range releases {
		if err := <-answers; err != nil {
			t.Errorf("a release: %v", err)
		}
	}
}

// TestConnectionThatComesLateIsForTheNextCaller has a caller give up while its
// connection is opened. No other one is ever opened.
func TestConnectionThatComesLateIsForTheNextCaller(t *testing.T) {
	dsn := servertest.MariaDB(t)
	begun, first := make(chan int, 10), make(chan struct{})
	var dials atomic.Int32
	driver.RegisterDialContext("gated", func(ctx context.Context, address string) (net.Conn, error) {
		i := dials.Add(1)
		begun <- int(i)
		if i > 1 {
			<-ctx.Done()
		}
		select {
		case <-first:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	})
	n := opened(t, strings.Replace(dsn, "@tcp(", "@gated(", 1))
	request := func(ctx context.Context) <-chan error {
		answer := make(chan error, 1)
		go func() {
			_, err := n.Do(ctx, node.Request{Op: node.OpInspect, Name: "job"})
			answer <- err
		}()
		<-begun
		return answer
	}
	ctx, cancel := context.WithCancel(t.Context())
	answer := request(ctx)
	cancel()
	if err := <-answer; !errors.Is(err, node.ErrUnsent) {
		t.Fatalf("without a connection: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	answer = request(ctx)
	close(first)
	if err := <-answer; err != nil {
		t.Errorf("when the connection is open: %v", err)
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

func TestCloseAfterConnectionsBrokeIsNoError(t *testing.T) {
	server := servertest.OwnMariaDB(t)
	proxy := servertest.NewProxy(t, server)
	for name, cut := range map[string]func(){"closed": proxy.Cut, "reset": proxy.Reset} {
		n := opened(t, server.Through(proxy.Addr()))
		granted(t, n, acquire("one"))
		cut()
		if err := n.Close(); err != nil {
			t.Errorf("connections are %s: Close returns %v", name, err)
		}
	}
}
