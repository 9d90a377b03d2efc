//go:build unix

package redis_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// authority signs certificates, into files of one folder.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.sign("ca", &x509.Certificate{Subject: pkix.Name{CommonName: "redlatch test"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name+".pem") }

// sign makes a certificate and its key, called name and name-key; for an hour,
// unless the template says otherwise.
func (a *authority) sign(name string, c *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	c.NotBefore = time.Now().Add(-24 * time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	must(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(a.t, err)
	for file, block := range map[string]*pem.Block{
		a.file(name):          {Type: "CERTIFICATE", Bytes: der},
		a.file(name + "-key"): {Type: "PRIVATE KEY", Bytes: private},
	} {
		must(a.t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	if a.cert == nil {
		a.key = key
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			a.t.Fatal(err)
		}
	}
}

// TestFailuresOfTLSAreTold has a server show an invalid certificate, require a
// certificate, or not speak TLS at all. With the fault corrected, it serves the
// same client.
func TestFailuresOfTLSAreTold(t *testing.T) {
	t.Parallel()
	servertest.Since(t, 7, "CONFIG SET takes one setting at a time, and so no certificate with its key")
	a := newAuthority(t)
	local := []net.IP{net.IPv4(127, 0, 0, 1)}
	a.sign("good", &x509.Certificate{IPAddresses: local})
	a.sign("old", &x509.Certificate{IPAddresses: local, NotAfter: time.Now().Add(-time.Hour)})
	a.sign("other", &x509.Certificate{DNSNames: []string{"elsewhere.example"}})
	stranger := newAuthority(t)
	stranger.sign("unknown", &x509.Certificate{IPAddresses: local})
	for _, c := range []struct {
		name      string
		cert, key string
		clients   string   // whether they must show a certificate
		plainTLS  bool     // TLS is spoken to a port that does not
		tlsPlain  bool     // the other way round
		want      []string // one of them
	}{
		{name: "expired", cert: a.file("old"), key: a.file("old-key"), want: []string{"certificate has expired"}},
		{name: "another name", cert: a.file("other"), key: a.file("other-key"), want: []string{"doesn't contain any IP SANs"}},
		{name: "unknown authority", cert: stranger.file("unknown"), key: stranger.file("unknown-key"), want: []string{"certificate signed by unknown authority"}},
		{name: "no certificate of ours", cert: a.file("good"), key: a.file("good-key"), clients: "yes", want: []string{"certificate required", "connection reset by peer", "broken pipe"}},
		{name: "TLS to a plain port", cert: a.file("good"), key: a.file("good-key"), plainTLS: true, want: []string{"time limit", "i/o timeout", "EOF"}},
		{name: "plain to a TLS port", cert: a.file("good"), key: a.file("good-key"), tlsPlain: true, want: []string{"EOF", "connection reset by peer"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			port := servertest.FreePort(t)
			clients := c.clients
			if clients == "" {
				clients = "no"
			}
			server := servertest.Redis(t, 1, "--tls-port", port, "--tls-cert-file", c.cert, "--tls-key-file", c.key,
				"--tls-ca-cert-file", a.file("ca"), "--tls-auth-clients", clients)[0]
			eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
				url := "rediss://127.0.0.1:" + port + "?tls_ca=" + a.file("ca")
				if c.plainTLS {
					url = "rediss://" + server.Addr() + "?tls_ca=" + a.file("ca")
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
				server.Do("CONFIG", "SET", "tls-cert-file", a.file("good"), "tls-key-file", a.file("good-key"), "tls-auth-clients", "no")
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
			withDriver(t, "direct", func(t *testing.T, nodes func(...string) []redlatch.Node) {
				server := servertest.Redis(t, 1)[0]
				server.Do("ACL", "SETUSER", "locks", "on", ">pw", "~*", "&*", "+@all")
				client := newClient(t, nodes(asUser(server, "locks:pw")), redlatch.Options{})
				l := mustLock(t, client, "job", redlatch.LockOptions{TTL: 3 * time.Second})
				take := func() {
					server.Do("ACL", "SETUSER", "locks", c.take)
					if c.take == "off" { // a user that is logged in stays so
						server.Do("CLIENT", "KILL", "USER", "locks")
					}
				}
				take()
				err := l.Extend(context.Background())
				wantErr(t, err, redlatch.ErrNoQuorum)
				server.Do("ACL", "SETUSER", "locks", c.give)
				eventually(t, patience, func() error { return l.Extend(context.Background()) })
				take()
				eventually(t, patience, func() error {
					if err = l.Extend(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
						return fmt.Errorf("got %v, want %s", err, c.want)
					}
					return nil
				})
				t.Log("who extends is told:", err)
				<-l.Context().Done()
				wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
				eventually(t, patience, noKeys([]*servertest.Server{server})) // it expires all the same
				server.Do("ACL", "SETUSER", "locks", c.give)
				next := mustLock(t, client, "job", redlatch.LockOptions{Tries: 100})
				if next.Token() <= l.Token() {
					t.Errorf("token %d came after %d", next.Token(), l.Token())
				}
				mustRelease(t, next)
			})
		})
	}
}
