//go:build unix

package redis_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/certs"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestFailuresOfTLSAreTold has a server show an invalid certificate, require a
// certificate, or not speak TLS at all. With the fault corrected, it serves the
// same client.
func TestFailuresOfTLSAreTold(t *testing.T) {
	t.Parallel()
	servertest.Since(t, 7, "CONFIG SET takes one setting at a time, and so no certificate with its key")
	a := certs.New(t)
	local := []net.IP{net.IPv4(127, 0, 0, 1)}
	a.Sign("good", &x509.Certificate{IPAddresses: local})
	a.Sign("old", &x509.Certificate{IPAddresses: local, NotAfter: time.Now().Add(-time.Hour)})
	a.Sign("other", &x509.Certificate{DNSNames: []string{"elsewhere.example"}})
	stranger := certs.New(t)
	stranger.Sign("unknown", &x509.Certificate{IPAddresses: local})
	for _, c := range []struct {
		name      string
		cert, key string
		clients   string   // whether they must show a certificate
		plainTLS  bool     // TLS is spoken to a port that does not
		tlsPlain  bool     // the other way round
		want      []string // one of them
	}{
		{name: "expired", cert: a.File("old"), key: a.File("old-key"), want: []string{"certificate has expired"}},
		{name: "another name", cert: a.File("other"), key: a.File("other-key"), want: []string{"doesn't contain any IP SANs"}},
		{name: "unknown authority", cert: stranger.File("unknown"), key: stranger.File("unknown-key"), want: []string{"certificate signed by unknown authority"}},
		{name: "no certificate of ours", cert: a.File("good"), key: a.File("good-key"), clients: "yes", want: []string{"certificate required", "connection reset by peer", "broken pipe"}},
		{name: "TLS to a plain port", cert: a.File("good"), key: a.File("good-key"), plainTLS: true, want: []string{"time limit", "i/o timeout", "EOF"}},
		{name: "plain to a TLS port", cert: a.File("good"), key: a.File("good-key"), tlsPlain: true, want: []string{"EOF", "connection reset by peer", "time limit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			port := servertest.FreePort(t)
			clients := c.clients
			if clients == "" {
				clients = "no"
			}
			server := servertest.Redis(t, 1, "--tls-port", port, "--tls-cert-file", c.cert, "--tls-key-file", c.key,
				"--tls-ca-cert-file", a.File("ca"), "--tls-auth-clients", clients)[0]
			eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
				url := "rediss://127.0.0.1:" + port + "?tls_ca=" + a.File("ca")
				if c.plainTLS {
					url = "rediss://" + server.Addr() + "?tls_ca=" + a.File("ca")
				}
				if c.tlsPlain {
					url = "redis://127.0.0.1:" + port
				}
				limit := 5 * time.Second
				if c.plainTLS {
					limit /= 5 // the server waits for the rest of a supposed command
				}
				client := newClient(t, nodes(url), redlatch.Options{NodeTimeout: limit})
				_, err := client.TryLock(context.Background(), "job", nil)
				wantErr(t, err, redlatch.ErrNoQuorum)
				t.Log("who asks is told:", err)
				if !slices.ContainsFunc(c.want, func(want string) bool { return strings.Contains(err.Error(), want) }) {
					t.Errorf("%v does not say any of %q", err, c.want)
				}
				if c.plainTLS || c.tlsPlain {
					return
				}
				server.Do("CONFIG", "SET", "tls-cert-file", a.File("good"), "tls-key-file", a.File("good-key"), "tls-auth-clients", "no")
				eventually(t, patience, func() error { return cycle(client) })
				server.Do("CONFIG", "SET", "tls-cert-file", c.cert, "tls-key-file", c.key, "tls-auth-clients", clients)
			})
		})
	}
}

// TestRightsThatAreTakenAreToldToTheHolder takes rights of the user of a holder, and
// gives them back.
func TestRightsThatAreTakenAreToldToTheHolder(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	server.Do("ACL", "SETUSER", "locks", "on", ">pw", "~*", "&*", "+@all")
	client := newClient(t, open(t, asUser(server, "locks:pw")), redlatch.Options{})
	l := mustLock(t, client, "job", redlatch.LockOptions{NoKeepAlive: true})
	for _, c := range []struct{ take, give, want string }{
		{"-pexpire", "+pexpire", "the user's ACL does not allow"},
		{"resetkeys", "~*", "NOPERM"},
		{"off", "on", "WRONGPASS"},
	} {
		server.Do("ACL", "SETUSER", "locks", c.take)
		server.Do("CLIENT", "KILL", "USER", "locks") // a user that is logged in stays so
		eventually(t, patience, func() error {
			err := l.Extend(context.Background())
			wantErr(t, err, redlatch.ErrNoQuorum)
			if !strings.Contains(err.Error(), c.want) {
				return fmt.Errorf("got %w, want %s", err, c.want)
			}
			return nil
		})
		server.Do("ACL", "SETUSER", "locks", c.give)
		eventually(t, patience, func() error { return l.Extend(context.Background()) })
	}
	mustRelease(t, l)
}
