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
	root, now, err := n.Node.Identity(ctx)
	if err != nil {
		return "", now, err
	}
	id, err := inSession(ctx, &n.store.link, ensemble)
	if errors.Is(err, zk.ErrNoAuth) {
		return root, now, nil
	}
	return id, now, explain(err)
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
