package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// poolSize is how many connections a node of New and Open has at most.
const poolSize = 8

// openPool returns a pool of our own.
func openPool(config *mysql.Config) (*sql.DB, error) {
	// One round trip a statement, and no prepared statement on the server.
	config.InterpolateParams = true
	config.Logger = &mysql.NopLogger{} // what it would log is in errors
	if config.Net == "tcp" && config.DialFunc == nil {
		config.DialFunc = dial
	}
	plain, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector{plain})
	db.SetMaxOpenConns(poolSize)
	db.SetMaxIdleConns(poolSize)
	db.SetConnMaxIdleTime(time.Minute)
	return db, nil
}

// connector opens connections of our own. On one that leads to the server itself it
// sets the session. Behind a proxy a session may be somebody else's next: nothing
// is set there, and the statements refuse one that does not commit.
type connector struct{ driver.Connector }

// dialed is the context's key for the *net.Conn that dial stores.
type dialed struct{}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if to, ok := ctx.Value(dialed{}).(*net.Conn); ok && err == nil {
		*to = c
	}
	return c, err
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	var link net.Conn
	conn, err := c.Connector.Connect(context.WithValue(ctx, dialed{}, &link))
	if err != nil {
		return nil, err
	}
	if err := setUp(ctx, conn, link); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// setUp sets a session that leads to the server itself.
func setUp(ctx context.Context, conn driver.Conn, link net.Conn) error {
	const text = "SELECT VERSION(), CONCAT(@@SESSION.autocommit), COALESCE((SELECT host FROM information_schema.processlist WHERE id = CONNECTION_ID()), '')"
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, text, nil)
	if err != nil {
		return err
	}
	found := make([]driver.Value, 3)
	err = rows.Next(found)
	rows.Close()
	if err != nil || link == nil {
		return err
	}
	version, autocommit, host := fmt.Sprintf("%s", found[0]), fmt.Sprintf("%s", found[1]), fmt.Sprintf("%s", found[2])
	waits := dialectOf(version).waits
	// The server sees the port that we connect from, unless a proxy is between.
	_, ours, err := net.SplitHostPort(link.LocalAddr().String())
	if err != nil || !strings.HasSuffix(host, ":"+ours) || autocommit == "1" && waits == "" {
		return nil
	}
	_, err = conn.(driver.ExecerContext).ExecContext(ctx, "SET SESSION autocommit = 1"+waits, nil)
	return err
}

// drop closes a connection instead of returning it to the pool.
func drop(c *sql.Conn) { _ = c.Raw(func(any) error { return driver.ErrBadConn }) }
