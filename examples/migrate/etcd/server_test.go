package etcd

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// start returns a client of an etcd server of the test's own.
func start(t *testing.T) *clientv3.Client {
	t.Helper()
	address := servertest.OwnEtcd(t).Addr()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: time.Minute})
	check.Must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}
