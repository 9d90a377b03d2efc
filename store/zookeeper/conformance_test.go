//go:build unix

package zookeeper

import (
	"crypto/rand"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
	"github.com/redlatch/redlatch/store/casnode/casnodetest"
)

func TestMain(m *testing.M) {
	code := servertest.Main(m)
	if one != nil {
		one.Stop()
	}
	os.Exit(code)
}

// one is the server of all tests that break none, which startOne starts.
var one *servertest.Database

var startOne = sync.OnceValue(func() error {
	all, err := servertest.NewZooKeeper(1, settings...)
	if err == nil {
		one = all[0]
		err = one.Start()
	}
	return err
})

// server returns the server that tests share.
func server(t testing.TB) *servertest.Database {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs ZooKeeper, and -short starts no servers")
	}
	check.Must(t, startOne())
	return one
}

// fresh returns an address with a root of its own on that server.
func fresh(t testing.TB) string {
	t.Helper()
	return "zookeeper://" + server(t).Addr() + "/" + rand.Text()
}

// settings are those of servers that start quickly, have short timers, and take the
// long rows of the suite.
var settings = []string{"tickTime=500", "maxSessionTimeout=120000", "-Djute.maxbuffer=8388608"}

const shortest = time.Second // two ticks

// start starts an ensemble, and returns its servers and its address, without a root.
func start(t testing.TB, members int, more ...string) (servers []*servertest.Database, address string) {
	t.Helper()
	for _, s := range servertest.OwnZooKeeper(t, members, append(settings, more...)...) {
		servers = append(servers, s.Database)
	}
	return servers, "zookeeper://" + strings.Join(servertest.Hosts(servers), "+")
}

func open(t testing.TB, address string) *Node {
	t.Helper()
	n, err := Open(address, &Options{MaxBuffer: 8 << 20})
	check.Must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

func TestConformance(t *testing.T) {
	t.Parallel()
	_, address := start(t, 3)
	casnodetest.Run(t, casnodetest.Harness{
		Open: func(t testing.TB) (a, b casnode.Store) {
			// Each claim has a root: the floor of one would be the fence of another.
			root := "/" + rand.Text()
			return open(t, address+root).store, open(t, address+root).store
		},
		Apart: func(t testing.TB) (a, b casnode.Store) {
			return open(t, address+"/rows").store, open(t, fresh(t)).store
		},
		Unprepared: func(t testing.TB) (a, b casnode.Store) {
			root := "/" + rand.Text()
			return open(t, address+root).store, open(t, address+root).store
		},
		// The node decides how its store reads. Servers that lag may show what is wrong.
		Node: func(t testing.TB) (a, b node.Node) {
			root := "/" + rand.Text()
			return open(t, address+root), open(t, address+root)
		},
		Sweeps: true, Hears: true, Places: true, Arrival: true, Observed: true, Timers: true, ShortestTimer: shortest,
	})
}
