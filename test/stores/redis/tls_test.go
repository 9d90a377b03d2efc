//go:build unix

package redis_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/certs"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
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

// TestRightsThatAreTakenEndTheLeaseAtItsDeadline disables the user under a
// holder, and enables it again in time, or too late.
func TestRightsThatAreTakenEndTheLeaseAtItsDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, take, give, want string }{
		{"the right to extend", "-pexpire", "+pexpire", "the user's ACL does not allow"},
		{"the keys", "resetkeys", "~*", "NOPERM"},
		{"the account", "off", "on", "WRONGPASS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			timedWith(t, "direct", func(t testing.TB, nodes func(...string) []redlatch.Node) {
				server := servertest.Redis(t, 1)[0]
				server.Do("ACL", "SETUSER", "locks", "on", ">pw", "~*", "&*", "+@all")
				client := newClient(t, nodes(asUser(server, "locks:pw")), redlatch.Options{})
				const ttl = 3 * time.Second
				asked := time.Now()
				l := mustLock(t, client, "job", redlatch.LockOptions{TTL: ttl})
				take := func() {
					server.Do("ACL", "SETUSER", "locks", c.take)
					if c.take == "off" { // a user that is logged in stays so
						server.Do("CLIENT", "KILL", "USER", "locks")
					}
				}
				take()
				err := l.Extend(context.Background())
				stall.In(t, ttl, asked)
				wantErr(t, err, redlatch.ErrNoQuorum)
				server.Do("ACL", "SETUSER", "locks", c.give)
				eventually(t, patience, func() error {
					at := time.Now()
					err := l.Extend(context.Background())
					if errors.Is(err, redlatch.ErrLost) {
						stall.In(t, ttl, asked)
						t.Fatal(err)
					}
					if err == nil {
						asked = at
					}
					return err
				})
				take()
				eventually(t, patience, func() error {
					err = l.Extend(context.Background())
					stall.In(t, ttl, asked)
					if err == nil || !strings.Contains(err.Error(), c.want) {
						return fmt.Errorf("got %v, want %s", err, c.want)
					}
					return nil
				})
				t.Log("who extends is told:", err)
				<-l.Context().Done()
				wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
				eventually(t, patience, noKeys([]*servertest.Server{server})) // it expires all the same
				server.Do("ACL", "SETUSER", "locks", c.give)
				next := mustLock(t, client, "job", redlatch.LockOptions{Wait: time.Minute})
				if next.Token() <= l.Token() {
					exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
				}
				mustRelease(t, next)
			})
		})
	}
}
