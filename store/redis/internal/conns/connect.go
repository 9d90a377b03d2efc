package conns

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/internal/resp"
)

// A Login is how a server is reached without a client library.
type Login struct {
	Address            string
	TLS                *tls.Config // nil for a plain connection
	Username, Password string
	Database           int
}

// Connect makes a connection that is in no group, logs in and selects the
// database. It returns the version of the protocol that the server speaks on it.
func Connect(ctx context.Context, l Login) (_ net.Conn, _ *resp.Conn, version int, err error) {
	// No named result: a return of an error would set it to nil under the function
	// that closes it.
	socket, err := dial(ctx, "tcp", l.Address, l.TLS, func(raw net.Conn) (net.Conn, error) { return raw, nil })
	if err != nil {
		return nil, nil, 0, err
	}
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	conn := resp.NewConn(socket)
	if version, err = l.login(conn); err == nil && l.Database != 0 {
		_, err = conn.Do("SELECT", strconv.Itoa(l.Database))
	}
	if err != nil {
		socket.Close()
		return nil, nil, 0, err
	}
	return socket, conn, version, nil
}

// login introduces the connection to the server.
func (l Login) login(conn *resp.Conn) (version int, err error) {
	user := cmp.Or(l.Username, "default")
	hello := []string{"HELLO", "3"}
	if l.Password != "" || l.Username != "" {
		hello = append(hello, "AUTH", user, l.Password)
	}
	_, err = conn.Do(append(hello, "SETNAME", "redlatch")...)
	var refused resp.ServerError
	if !errors.As(err, &refused) {
		return 3, err
	}
	switch code, _, _ := strings.Cut(string(refused), " "); code {
	case "NOPERM", "NOPROTO", "ERR": // the user may not say hello, or the server is no Redis
	default:
		if code == strings.ToUpper(code) {
			return 0, err
		}
	}
	first := err
	if len(hello) > 2 {
		_, err = conn.Do("AUTH", user, l.Password)
	} else {
		_, err = conn.Do("PING")
	}
	switch {
	case err != nil && !errors.As(err, &refused):
		return 0, first // it hung up, and had said why
	case err != nil && len(hello) > 2:
		return 0, err
	}
	if _, err := conn.Do("CLIENT", "SETNAME", "redlatch"); err != nil && !errors.As(err, &refused) {
		return 0, err // to have no name does no harm
	}
	return 2, nil
}
