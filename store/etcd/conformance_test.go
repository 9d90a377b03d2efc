//go:build unix

package etcd_test

import (
	"crypto/rand"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/casnode"
	"github.com/redlatch/redlatch/store/casnode/casnodetest"
	"github.com/redlatch/redlatch/store/etcd"
)

func TestMain(m *testing.M) {
	code := servertest.Main(m)
	for _, c := range clusters {
		for _, member := range c.members {
			member.Stop()
		}
	}
	os.Exit(code)
}

// cluster is an etcd of all tests, started when one needs it.
type cluster struct {
	once    sync.Once
	members []*servertest.Database
	err     error
}

// clusters are one of three members, and another one of one member.
var clusters = map[string]*cluster{"three": {}, "other": {}}

// hosts returns the members of a cluster, as in an address.
func hosts(t testing.TB, which string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs etcd, and -short starts no servers")
	}
	c := clusters[which]
	c.once.Do(func() {
		c.members, c.err = start(map[string]int{"three": 3, "other": 1}[which])
	})
	check.Must(t, c.err)
	return addresses(c.members)
}

// start starts the members of a cluster together.
func start(n int, flags ...string) ([]*servertest.Database, error) {
	members, err := servertest.NewEtcd(n, flags...)
	if err != nil {
		return nil, err
	}
	return members, servertest.Together(members, (*servertest.Database).Start)
}

// open returns a node with a prefix.
func open(t testing.TB, hosts, prefix string) *etcd.Node {
	t.Helper()
	n, err := etcd.Open("etcd://"+hosts+"/"+prefix, nil)
	check.Must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

func TestConformance(t *testing.T) {
	at := hosts(t, "three")
	two := func(t testing.TB) (a, b casnode.Store) {
		prefix := "conformance/" + rand.Text() // a floor of its own
		return etcd.Store(open(t, at, prefix)), etcd.Store(open(t, at, prefix))
	}
	casnodetest.Run(t, casnodetest.Harness{
		Open: two, Unprepared: two,
		Apart: func(t testing.TB) (a, b casnode.Store) {
			return etcd.Store(open(t, at, "apart")), etcd.Store(open(t, hosts(t, "other"), "apart"))
		},
		Sweeps: true, Hears: true, Places: true, Arrival: true, Observed: true, Timers: true, ShortestTimer: 2 * time.Second,
	})
}
