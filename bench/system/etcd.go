package system

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// etcdLocker is a session: its lease keeps all its locks alive.
type etcdLocker struct {
	client  *clientv3.Client
	session *concurrency.Session
	forked  bool
}

func openEtcd(ctx context.Context, addresses []string) (Locker, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: addresses, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, err
	}
	l := &etcdLocker{client: c}
	if err := l.open(); err != nil {
		c.Close()
		return nil, err
	}
	return l, nil
}

func (l *etcdLocker) open() (err error) {
	l.session, err = concurrency.NewSession(l.client, concurrency.WithTTL(int(TTL/time.Second)))
	return err
}

// Fork opens another session: two mutexes of one session and one name are the
// same lock and do not exclude each other.
func (l *etcdLocker) Fork() (Locker, error) {
	own := &etcdLocker{client: l.client, forked: true}
	return own, own.open()
}

func (l *etcdLocker) Lock(ctx context.Context, name string) (Held, error) {
	m := concurrency.NewMutex(l.session, name)
	if err := m.Lock(ctx); err != nil {
		return nil, err
	}
	return etcdHeld{m}, nil
}

func (l *etcdLocker) Close() {
	l.session.Close()
	if !l.forked {
		l.client.Close()
	}
}

// etcdHeld gives a release more time than the others have: on a crowded
// machine etcd needs it, and one that is given up keeps everyone waiting.
type etcdHeld struct{ mutex *concurrency.Mutex }

func (h etcdHeld) Release() error {
	ctx, cancel := context.WithTimeout(context.Background(), TTL)
	defer cancel()
	return h.mutex.Unlock(ctx)
}
