//go:build unix

package redis_test

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	goredisclient "github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/certs"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node/nodetest"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/direct"
	"github.com/redlatch/redlatch/store/redis/goredis"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

// drivers are the adapters, by name.
var drivers = map[string]func(addresses ...string) ([]redlatch.Node, error){
	"direct":  direct.Nodes,
	"rueidis": rueidis.Nodes,
	"goredis": goredis.Nodes,
}

// eachDriver runs a test with every adapter.
func eachDriver(t *testing.T, test func(t *testing.T, nodes func(addresses ...string) []redlatch.Node)) {
	for name := range drivers {
		withDriver(t, name, test)
	}
}

// eachLibrary runs a test with the adapters of client libraries, which know
// Sentinel and Cluster.
func eachLibrary(t *testing.T, test func(t *testing.T, nodes func(addresses ...string) []redlatch.Node)) {
	for _, name := range []string{"rueidis", "goredis"} {
		withDriver(t, name, test)
	}
}

// withDriver runs a test with one adapter, for what a client decides whatever the
// adapter is: all of them answer alike (TestConformance), have the errors of the
// server (TestServerErrorsSayWhatToDo), and notice that no reply comes
// (TestReplyThatNeverComesIsATimeoutThroughEveryDriver).
func withDriver(t *testing.T, name string, test func(t *testing.T, nodes func(addresses ...string) []redlatch.Node)) {
	t.Run(name, func(t *testing.T) {
		test(t, func(addresses ...string) []redlatch.Node {
			t.Helper()
			nodes, err := drivers[name](addresses...)
			must(t, err)
			return nodes
		})
	})
}

// newClient returns a client of servers that were just started, closed with
// the test.
func newClient(t testing.TB, nodes []redlatch.Node, opts redlatch.Options) *redlatch.Client {
	t.Helper()
	opts.AssumeFresh = true
	if opts.TTL == 0 && opts.MaxTTL == 0 {
		opts.TTL = longTTL
	}
	opts.NodeTimeout = cmp.Or(opts.NodeTimeout, patient)
	c, err := redlatch.New(nodes, &opts)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// eventually waits until check returns no error.
var eventually = poll.Within

var (
	must    = check.Must
	wantErr = locktest.WantErr
)

func TestConformance(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		nodetest.Run(t, nodetest.Harness{
			Wakes: true,
			Open: func(testing.TB) (a, b redlatch.Node) {
				return nodes(server.URL())[0], nodes(server.URL())[0]
			},
		})
	})
}

func TestConformanceOverAClientOfTheCallers(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	t.Run("rueidis with RESP2", func(t *testing.T) {
		client, err := rueidisclient.NewClient(rueidisclient.ClientOption{InitAddress: []string{server.Addr()}, AlwaysRESP2: true, DisableCache: true})
		must(t, err)
		t.Cleanup(client.Close)
		nodetest.Run(t, nodetest.Harness{Wakes: true, Open: func(t testing.TB) (a, b redlatch.Node) {
			a, err1 := rueidis.From(client, &rueidis.Options{Name: "a"})
			b, err2 := rueidis.From(client, &rueidis.Options{Name: "b"})
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			return a, b
		}})
	})
	t.Run("goredis with RESP3 and retries", func(t *testing.T) {
		client := goredisclient.NewClient(&goredisclient.Options{Addr: server.Addr(), Protocol: 3, MaxRetries: 3})
		t.Cleanup(func() { client.Close() })
		nodetest.Run(t, nodetest.Harness{Wakes: true, Open: func(t testing.TB) (a, b redlatch.Node) {
			a, err1 := goredis.From(client, &goredis.Options{Name: "a"})
			b, err2 := goredis.From(client, &goredis.Options{Name: "b"})
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			return a, b
		}})
	})
	for _, err := range []error{
		second(rueidis.From(nil, &rueidis.Options{Name: "a"})), second(goredis.From(nil, &goredis.Options{Name: "a"})),
	} {
		wantErr(t, err, redlatch.ErrConfig)
	}
}

func second[T any](_ T, err error) error { return err }

// noLoading is why tests of servers that load their data are not for Redis 6.2.
const noLoading = "a server that loads its data answers only after every 2 MB, and no setting changes that"

// TestServerErrorsSayWhatToDo provokes each error on a real server.
func TestServerErrorsSayWhatToDo(t *testing.T) {
	master := servertest.Redis(t, 1)[0]
	host, port, _ := net.SplitHostPort(master.Addr())
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		for _, c := range []struct {
			code     string
			settings []string
			provoke  func(s *servertest.Server)
			user     string
		}{
			{code: "READONLY", settings: []string{"--replicaof", host, port}},
			{code: "NOAUTH", settings: []string{"--requirepass", "secret"}},
			{code: "WRONGPASS", settings: []string{"--requirepass", "secret"}, user: ":wrong@"},
			{code: "NOPERM", provoke: func(s *servertest.Server) {
				s.Do("ACL", "SETUSER", "weak", "on", ">pw", "~*", "+@connection")
			}, user: "weak:pw@"},
			{code: "OOM", settings: []string{"--maxmemory", "1", "--maxmemory-policy", "noeviction"}},
			{code: "MISCONF", settings: []string{"--save", "1", "1"}, provoke: func(s *servertest.Server) {
				// A folder in place of the file that the server saves to.
				must(t, os.Mkdir(filepath.Join(s.Dir(), "dump.rdb"), 0o700))
				s.Do("SET", "x", "y")
				s.Try("BGSAVE")
				eventually(t, patience, func() error {
					if !strings.Contains(s.Do("INFO", "persistence"), "rdb_last_bgsave_status:err") {
						return errors.New("the save has not failed yet")
					}
					return nil
				})
			}},
			{code: "NOREPLICAS", settings: []string{"--min-replicas-to-write", "1"}},
			{code: "CLUSTERDOWN", settings: []string{"--cluster-enabled", "yes"}},
		} {
			t.Run(c.code, func(t *testing.T) {
				s := servertest.Redis(t, 1, c.settings...)[0]
				client := newClient(t, nodes(strings.Replace(s.URL(), "redis://", "redis://"+c.user, 1)), redlatch.Options{})
				if c.code == "MISCONF" { // extensions fail too, which is no loss
					l := mustLock(t, client, "held", redlatch.LockOptions{NoKeepAlive: true})
					defer func() {
						wantText(t, l.Extend(context.Background()), "MISCONF ")
						must(t, l.Err())
					}()
				}
				if c.provoke != nil {
					c.provoke(s)
				}
				_, err := client.TryLock(context.Background(), "job", nil)
				wantErr(t, err, redlatch.ErrNoQuorum)
				var server *redis.ServerError
				if !errors.As(err, &server) || server.Code != c.code {
					t.Fatalf("got %v, want %s", err, c.code)
				}
				if server.Hint() == "" || !strings.Contains(err.Error(), server.Hint()) {
					t.Errorf("%v does not say what to do", err)
				}
				if strings.Contains(err.Error(), "wrong@") || strings.Contains(err.Error(), "pw@") {
					t.Errorf("%v shows the password", err)
				}
			})
		}
	})
}

func TestLoadingServerIsANodeError(t *testing.T) {
	servertest.Since(t, 7, noLoading)
	s := servertest.Redis(t, 1)[0]
	s.Do("EVAL", "for i=1,3000 do redis.call('SET', 'filler'..i, string.rep('x', 100)) end", "0")
	s.Do("SAVE")
	s.Kill()
	s.RestartNow("--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		c := newClient(t, nodes(s.URL()), redlatch.Options{})
		_, err := c.TryLock(context.Background(), "job", nil)
		if server, ok := errors.AsType[*redis.ServerError](err); !ok || server.Code != "LOADING" {
			t.Errorf("got %v, want LOADING", err)
		}
	})
}

func TestForgottenScriptsAreSentAgain(t *testing.T) {
	server := servertest.Redis(t, 1)[0]
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		c := newClient(t, nodes(server.URL()), redlatch.Options{})
		for range 3 {
			l, err := c.TryLock(context.Background(), "job", nil)
			must(t, err)
			server.Do("SCRIPT", "FLUSH")
			must(t, l.Extend(context.Background()))
			server.Do("SCRIPT", "FLUSH")
			must(t, l.Release(context.Background()))
		}
	})
}

func TestBrokenConnectionsAreMadeAgain(t *testing.T) {
	server := servertest.Redis(t, 1)[0]
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		c := newClient(t, nodes(server.URL()), redlatch.Options{})
		l, err := c.Lock(context.Background(), "job", nil)
		must(t, err)
		server.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		eventually(t, patience, func() error { return l.Extend(context.Background()) })
		server.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		l.Release(context.Background())
		eventually(t, patience, func() error {
			if keys := server.Keys(); len(keys) > 0 {
				return errors.New("keys are left: " + strings.Join(keys, ", "))
			}
			return nil
		})
	})
}

func TestTLSPasswordAndDatabase(t *testing.T) {
	cert, private := certs.SelfSigned(t, "127.0.0.1")
	tlsPort := servertest.FreePort(t)
	server := servertest.Redis(t, 1, "--tls-port", tlsPort, "--tls-cert-file", cert, "--tls-key-file", private,
		"--tls-ca-cert-file", cert, "--tls-auth-clients", "no")[0]
	server.Do("ACL", "SETUSER", "locker", "on", ">p@ss/word", "~*", "&*", "+@all")
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		url := "rediss://locker:p%40ss%2Fword@127.0.0.1:" + tlsPort + "/3?tls_ca=" + cert
		c := newClient(t, nodes(url), redlatch.Options{})
		l, err := c.TryLock(context.Background(), "job", nil)
		must(t, err)
		if !strings.Contains(server.Do("INFO", "keyspace"), "db3:keys=2") {
			t.Errorf("the lock and its fence are not in database 3: %s", server.Do("INFO", "keyspace"))
		}
		l.Release(context.Background())
		// A certificate that no authority signed is rejected.
		c = newClient(t, nodes("rediss://locker:p%40ss%2Fword@127.0.0.1:"+tlsPort), redlatch.Options{})
		_, err = c.TryLock(context.Background(), "job", nil)
		wantErr(t, err, redlatch.ErrNoQuorum)
		wantText(t, err, "certificate")
	})
}
