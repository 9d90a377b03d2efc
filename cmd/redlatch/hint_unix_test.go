//go:build unix

package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/certs"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/redis"
)

// TestHintIsForTheCause asks real servers that refuse, each for another reason.
func TestHintIsForTheCause(t *testing.T) {
	t.Parallel()
	closed := servertest.Redis(t, 1, "--requirepass", "secret")[0]
	limited := servertest.Redis(t, 1)[0]
	limited.Do("ACL", "SETUSER", "weak", "on", ">pw", "~*", "+ping", "+hello", "+auth", "+client")
	secure := secureServer(t)
	postgres, maria := servertest.OwnPostgreSQL(t), servertest.OwnMariaDB(t)
	mysql := "mysql://" + strings.NewReplacer("@tcp(", "@", ")", "").Replace(maria.DSN())
	pg := postgres.DSN()
	other := func(address, database string) string {
		path, query, _ := strings.Cut(address, "?")
		return path[:strings.LastIndex(path, "/")+1] + database + "?" + query
	}
	user := func(address, user string) string {
		scheme, rest, _ := strings.Cut(address, "://")
		return scheme + "://" + user + rest[strings.Index(rest, "@"):]
	}
	for name, c := range map[string]struct{ nodes, hint string }{
		"NOAUTH":                        {closed.URL(), hintPassword},
		"WRONGPASS":                     {"redis://:wrong@" + closed.Addr(), hintWrong},
		"NOPERM":                        {"redis://weak:pw@" + limited.Addr(), hintACL},
		"no such Redis database":        {limited.URL() + "/99", hintDatabase},
		"TLS to a plain port":           {"rediss://" + limited.Addr(), hintNoTLS},
		"TLS to a port with a password": {"rediss://" + closed.Addr(), hintNoTLS},
		"plain to a TLS port":           {"redis://" + secure, hintTLS},
		"a certificate nobody signed":   {"rediss://" + secure, hintCert},
		"connection refused":            {"redis://127.0.0.1:" + servertest.FreePort(t), hintRefused},
		"unknown host":                  {"redis://nobody.invalid", hintHost},
		"PostgreSQL refused":            {"postgres://u@127.0.0.1:" + servertest.FreePort(t) + "/d", hintRefused},
		"no such PostgreSQL database":   {other(pg, "nowhere"), hintDatabase},
		"no such PostgreSQL user":       {user(pg, "nobody"), hintWrong},
		"PostgreSQL without TLS":        {strings.Replace(pg, "sslmode=disable", "sslmode=require", 1), hintSQLTLS},
		"no such MySQL database":        {other(mysql, "nowhere"), hintDatabase},
		"no such MySQL user":            {user(mysql, "nobody:wrong"), hintWrong},
		"MySQL without TLS":             {other(mysql, "app") + "tls=true", hintSQLTLS},
		"MySQL refused":                 {"mysql://u@127.0.0.1:" + servertest.FreePort(t) + "/d", hintRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, limit := exitNoQuorum, "0"
			if c.hint == hintPassword || c.hint == hintWrong {
				want, limit = exitDenied, "10s" // no server is waited for that refuses us
			}
			code, _, stderr := command(t, "run", "-w", limit, "--node-timeout", "10s", "--nodes", c.nodes, "job", "--", "true")
			if code != want || strings.Contains(stderr, "waiting") || !strings.HasSuffix(stderr, "; "+c.hint+"\n") || strings.Contains(stderr, hintMajority) {
				t.Errorf("exit %d, want %d, %swant the hint %q", code, want, stderr, c.hint)
			}
			if _, stdout, stderr := command(t, "doctor", "--samples", "1", "--node-timeout", "10s", "--nodes", c.nodes); !strings.Contains(stdout, c.hint) {
				t.Errorf("doctor: %s%swant %q", stdout, stderr, c.hint)
			}
		})
	}
}

func TestHintForSeveralCausesIsThatOfMostNodes(t *testing.T) {
	refused := observe.Result{Err: syscall.ECONNREFUSED}
	closed := observe.Result{Err: redis.NewServerError("NOAUTH Authentication required.")}
	full := observe.Result{Err: redis.NewServerError("OOM command not allowed")}
	other := observe.Result{Err: errors.New("something else")}
	for _, c := range []struct {
		nodes []observe.Result
		want  string
	}{
		{[]observe.Result{closed, refused, refused}, hintRefused + " (and see the other nodes' errors)"},
		{[]observe.Result{closed, other, {}}, hintPassword},
		{[]observe.Result{full, full, {}}, ""}, // the error itself says what to do
		{[]observe.Result{other, other, {}}, hintMajority},
	} {
		if got := quorumHint(&redlatch.QuorumError{Nodes: c.nodes}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// secureServer starts a server that accepts nothing but TLS, under a certificate
// that nobody signed, and returns its address.
func secureServer(t *testing.T) string {
	t.Helper()
	cert, key := certs.SelfSigned(t, "127.0.0.1")
	port := servertest.FreePort(t)
	servertest.Redis(t, 1, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	return "127.0.0.1:" + port
}
