package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// ensemblePath is one znode for all roots. Its data, a random text, identifies the
// ensemble. Nobody can change it.
const ensemblePath = "/redlatch-ensemble"

// Identity returns the ensemble's, so that two roots in one ensemble are not counted as
// two servers. It has no clock.
func (n *Node) Identity(ctx context.Context) (string, time.Time, error) {
	began := time.Now()
	id, err := inSession(ctx, &n.store.link, func(conn *zk.Conn) (id string, err error) {
		// The first request of a process prepares the store next. In a crowd of new
		// processes each round trip is long.
		err = all(func() (err error) { id, err = ensemble(conn); return err }, func() error {
			n.store.ready.Store(n.store.there(conn))
			return nil
		})
		return id, err
	})
	if errors.Is(err, zk.ErrNoAuth) {
		return n.Node.Identity(ctx) // the root's
	}
	if err != nil {
		err = n.store.busy(began, unsent(explain(err)))
	}
	return id, time.Time{}, err
}

// ensemble returns the data of the znode, which it creates if there is none.
func ensemble(conn *zk.Conn) (string, error) {
	for {
		data, _, err := conn.Get(ensemblePath)
		if err == nil || !errors.Is(err, zk.ErrNoNode) {
			return string(data), err
		}
		_, err = conn.Create(ensemblePath, []byte(rand.Text()), 0, zk.WorldACL(zk.PermRead))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return "", err
		}
		if _, err = conn.Sync(ensemblePath); err != nil { // another client may have created it
			return "", err
		}
	}
}
