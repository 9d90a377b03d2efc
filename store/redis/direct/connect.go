package direct

import (
	"context"
	"errors"
	"net"
	"strconv"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/internal/conns"
)

// connect makes a connection, logs in and selects the database. It returns the
// version of the protocol that the server speaks on it.
func connect(ctx context.Context, a *redis.Address) (_ net.Conn, _ *resp.Reader, version int, err error) {
	// No named result: a return of an error would set it to nil under the function
	// that closes it.
	socket, err := conns.Dial(ctx, a.Hosts[0], a.TLS)
	if err != nil {
		return nil, nil, 0, err
	}
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	conn := resp.NewConn(socket)
	if version, err = login(conn, a); err == nil && a.Database != 0 {
		_, err = conn.Do("SELECT", strconv.Itoa(a.Database))
	}
	if err != nil {
		socket.Close()
		return nil, nil, 0, err
	}
	return socket, conn.Reader(), version, nil
}

// login introduces the connection to the server.
func login(conn *resp.Conn, a *redis.Address) (version int, err error) {
	user := a.Username
	if user == "" {
		user = "default"
	}
	hello := []string{"HELLO", "3"}
	if a.Password != "" || a.Username != "" {
		hello = append(hello, "AUTH", user, a.Password)
	}
	_, err = conn.Do(append(hello, "SETNAME", "redlatch")...)
	var refused resp.ServerError
	if !errors.As(err, &refused) {
		return 3, err
	}
	switch redis.NewServerError(string(refused)).Code {
	case "NOPERM", "NOPROTO", "ERR": // the user may not say hello, or the server is no Redis
	default:
		return 0, err
	}
	first := err
	if len(hello) > 2 {
		_, err = conn.Do("AUTH", user, a.Password)
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
