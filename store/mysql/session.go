package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// poolSize is how many connections a node of New and Open has at most.
const poolSize = 2

// openPool returns a pool of our own.
func openPool(config *mysql.Config) (*sql.DB, error) {
	// One round trip a statement, also before it is prepared on the server.
	config.InterpolateParams = true
	config.Logger = &mysql.NopLogger{} // what it would log is in errors
	plain, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(newConnector(plain))
	db.SetMaxOpenConns(poolSize + 1) // with the one that sleeps
	db.SetMaxIdleConns(poolSize + 1)
	db.SetConnMaxIdleTime(time.Minute)
	return db, nil
}

// connector opens connections of our own.
//
// A connection that takes longer than its caller waits is for the next caller. The
// driver closes the connection of a request that is given up, so a moment in which
// the server is slow can end them all; and to open one takes several round trips. If
// each attempt ended with its caller, no connection would come about any more.
type connector struct {
	driver.Connector
	ctx     context.Context // until Close
	end     context.CancelFunc
	opening chan struct{} // one for each attempt
	opened  chan attempt
}

// attempt is what an attempt to open a connection has come to.
type attempt struct {
	conn driver.Conn
	err  error
}

const (
	// longestAttempt is how long it may take to open a connection.
	longestAttempt = 10 * time.Second
	// keepAttempt is how long its result is kept for the next caller.
	keepAttempt = time.Second
)

func newConnector(plain driver.Connector) *connector {
	c := &connector{Connector: plain, opening: make(chan struct{}, poolSize+1), opened: make(chan attempt)}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	select {
	case a := <-c.opened:
		return a.conn, a.err
	case c.opening <- struct{}{}:
		go c.attempt()
	default: // enough are under way
	}
	select {
	case a := <-c.opened:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// attempt opens a connection, for any caller that waits for one.
func (c *connector) attempt() {
	defer func() { <-c.opening }()
	ctx, cancel := context.WithTimeout(c.ctx, longestAttempt)
	defer cancel()
	conn, err := c.open(ctx)
	select {
	case c.opened <- attempt{conn, err}:
		return
	case <-time.After(keepAttempt):
	case <-c.ctx.Done():
	}
	if conn != nil {
		conn.Close()
	}
}

// Close ends the attempts that are under way. The pool calls it.
func (c *connector) Close() error {
	c.end()
	return nil
}

// open opens a connection, and sets its session.
func (c *connector) open(ctx context.Context) (driver.Conn, error) {
	plain, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := &preparing{plainConn: plain.(plainConn), statements: map[string]driver.Stmt{}}
	for _, text := range setUp {
		if _, err := conn.ExecContext(ctx, text, nil); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

// plainConn is what the pool needs of a connection of the driver.
type plainConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

// preparing is a connection that prepares on the server what it executes a second
// time: the server takes longer to parse a statement than to execute it. Nothing
// else is kept of a session. Behind a proxy the next statement may get another
// one, so each statement checks its session anew, prepared or not.
type preparing struct {
	plainConn
	// statements has those that are prepared, by their texts; nil for one that was
	// executed once.
	statements map[string]driver.Stmt
	refused    bool // server or proxy have refused to prepare one
}

// mostPrepared is how many statements a connection prepares. A server has 16,382 for
// all its connections by default (max_prepared_stmt_count).
const mostPrepared = 32

// statement returns a statement that is prepared, or nil if it is to be sent as
// text.
func (c *preparing) statement(ctx context.Context, text string, args []driver.NamedValue) driver.Stmt {
	s, again := c.statements[text]
	switch {
	case c.refused || len(args) == 0:
		return nil
	case s != nil:
	case again:
		var err error
		if s, err = c.PrepareContext(ctx, text); err != nil {
			c.refused = true
			return nil
		}
		c.statements[text] = s
	case len(c.statements) < mostPrepared:
		c.statements[text] = nil
	}
	return s
}

// forgotten reports whether the server knows a statement no longer, and has not
// executed it. Then it is sent as text.
func (c *preparing) forgotten(s driver.Stmt, err error) bool {
	if s != nil && number(err) != noStatement {
		return false
	}
	c.refused = c.refused || s != nil
	return true
}

func (c *preparing) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (r driver.Result, err error) {
	s := c.statement(ctx, text, args)
	if s != nil {
		r, err = s.(driver.StmtExecContext).ExecContext(ctx, args)
	}
	if c.forgotten(s, err) {
		return c.plainConn.ExecContext(ctx, text, args)
	}
	return r, err
}

func (c *preparing) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (r driver.Rows, err error) {
	s := c.statement(ctx, text, args)
	if s != nil {
		r, err = s.(driver.StmtQueryContext).QueryContext(ctx, args)
	}
	if c.forgotten(s, err) {
		return c.plainConn.QueryContext(ctx, text, args)
	}
	return r, err
}

// setUp ends a transaction that init_connect has begun, and has statements be
// committed. MySQL cannot limit one statement that writes, so its sessions bound
// their waits for locks; MariaDB skips the comment. Nothing depends on it: behind a
// proxy a statement may get another session, and refuses one that does not commit.
var setUp = []string{noTransaction, fmt.Sprintf("SET SESSION autocommit = 1 /*!80000 , innodb_lock_wait_timeout = %d, lock_wait_timeout = %[1]d */", waitAtMost/time.Second)}

// drop closes a connection instead of returning it to the pool.
func drop(c *sql.Conn) { _ = c.Raw(func(any) error { return driver.ErrBadConn }) }
