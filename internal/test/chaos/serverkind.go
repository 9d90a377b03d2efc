//go:build unix

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/test/servertest"
	_ "github.com/redlatch/redlatch/store/mysql"
	_ "github.com/redlatch/redlatch/store/postgres"
	_ "github.com/redlatch/redlatch/store/redis/rueidis" // redis+sentinel://
)

// ServerKind is a kind of server.
type ServerKind string

// The kinds.
const (
	Redis    ServerKind = "redis"
	Postgres ServerKind = "postgres"
	MariaDB  ServerKind = "mariadb"
	MySQL    ServerKind = "mysql"
	Sentinel ServerKind = "sentinel" // a Redis master with two replicas, and a sentinel
	// Clusters of three members. A program that has them imports their stores.
	Etcd      ServerKind = "etcd"
	ZooKeeper ServerKind = "zookeeper"
)

// ServerKinds are all of them.
var ServerKinds = []ServerKind{Redis, Postgres, MariaDB, MySQL, Sentinel, Etcd, ZooKeeper}

// replicated are the kinds whose server may be replaced by a replica. crashing are
// those of which servers may be killed and frozen, one or some.
var (
	replicated = []ServerKind{Redis, Postgres, MariaDB, MySQL, Sentinel}
	crashing   = []ServerKind{Redis, Postgres, MariaDB, MySQL, Etcd, ZooKeeper}
)

// ParseServerKinds reads kinds that are separated by commas.
func ParseServerKinds(list string) ([]ServerKind, error) {
	var all []ServerKind
	for word := range strings.SplitSeq(list, ",") {
		kind := ServerKind(strings.TrimSpace(word))
		if !slices.Contains(ServerKinds, kind) {
			return nil, fmt.Errorf("the kind of server %q is unknown: it must be one of %v", word, ServerKinds)
		}
		all = append(all, kind)
	}
	return all, nil
}

// serverIDs numbers the servers of MariaDB and MySQL: those that follow each other must differ.
var serverIDs atomic.Int64

// database returns a server of a kind, with connections for many clients; nil for
// Redis.
func (k ServerKind) database() *servertest.Database {
	binlog := []string{"--max-connections=600", "--log-bin=log-bin", "--log-slave-updates", fmt.Sprint("--server-id=", serverIDs.Add(1))}
	switch k {
	case Postgres:
		return servertest.NewPostgreSQL("-c", "max_connections=600")
	case MariaDB:
		return servertest.NewMariaDB(binlog...)
	case MySQL:
		return servertest.NewMySQL(append(binlog, "--gtid-mode=ON", "--enforce-gtid-consistency=ON")...)
	}
	return nil
}

// process is what can be done to a server of any kind.
type process interface {
	Kill()
	Freeze() error
	Thaw() error
}
