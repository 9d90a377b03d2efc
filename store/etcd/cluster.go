package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// clusterKey is one for all prefixes. It has a random text that identifies the cluster.
// etcd's own id of a cluster is made of the addresses of its first members, and of a
// token: with the defaults it is the same on many machines.
const clusterKey = "redlatch.cluster"

// Identity returns the cluster's, so that two prefixes of one cluster are not counted
// as two servers. It has no clock.
func (n *Node) Identity(ctx context.Context) (string, time.Time, error) {
	id, now, err := n.Node.Identity(ctx)
	if err == nil {
		id, err = n.store.cluster(ctx)
	}
	return id, now, err
}

// cluster returns the text under clusterKey, which it writes if there is none. A user
// that may not do so gets etcd's own id, and so does one of a database that is full.
func (s *store) cluster(ctx context.Context) (string, error) {
	for {
		r, err := s.txn(ctx, nil, clientv3.OpGet(clusterKey))
		if err == nil && len(found(r, 0)) > 0 {
			return text(found(r, 0)), nil
		}
		if err == nil {
			_, err = s.txn(ctx, []clientv3.Cmp{is(clusterKey, "")}, clientv3.OpPut(clusterKey, rand.Text()))
		}
		if errors.Is(err, ErrAuth) || errors.Is(err, ErrNoSpace) {
			if r, err = s.txn(ctx, nil, clientv3.OpGet(s.identity())); err == nil {
				return fmt.Sprintf("cluster %x", r.Header.ClusterId), nil
			}
		}
		if err != nil {
			return "", err
		}
	}
}
