//go:build unix

package zookeeper

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
)

// BenchmarkBesideTheClientsLock measures an uncontended pair, and hand-overs among 8
// processes, beside the lock of package zk, which is ZooKeeper's recipe: on three
// servers that wait for the disk.
func BenchmarkBesideTheClientsLock(b *testing.B) {
	_, address := start(b, 3, "-Dzookeeper.forceSync=yes")
	type locker func() (unlock func() error, err error)
	ours := func(b *testing.B, name string) locker {
		c, err := redlatch.New([]redlatch.Node{open(b, address)}, &redlatch.Options{AssumeFresh: true, NodeTimeout: 5 * time.Second})
		check.Must(b, err)
		b.Cleanup(func() { c.Close() })
		return func() (func() error, error) {
			l, err := c.Lock(context.Background(), name, &redlatch.LockOptions{TTL: 30 * time.Second})
			if err != nil {
				return nil, err
			}
			return func() error { return l.Release(context.Background()) }, nil
		}
	}
	theirs := func(b *testing.B, name string) locker {
		conn, _, err := zk.Connect(strings.Split(strings.TrimPrefix(address, "zookeeper://"), "+"), 30*time.Second, zk.WithLogger(silent{}))
		check.Must(b, err)
		b.Cleanup(conn.Close)
		l := zk.NewLock(conn, "/recipe-"+name, zk.WorldACL(zk.PermAll))
		return func() (func() error, error) { return l.Unlock, l.Lock() }
	}
	for _, kind := range []struct {
		name string
		make func(b *testing.B, name string) locker
	}{{"redlatch", ours}, {"zk.Lock", theirs}} {
		pairs := func(n int) func(b *testing.B) {
			return func(b *testing.B) {
				var all []locker
				for range n {
					all = append(all, kind.make(b, b.Name()[strings.LastIndexByte(b.Name(), '/')+1:]))
				}
				turns := make(chan struct{}, b.N)
				for range b.N {
					turns <- struct{}{}
				}
				close(turns)
				for range 20 { // the servers compile what they execute
					for _, lock := range all {
						unlock, err := lock()
						check.Must(b, err)
						check.Must(b, unlock())
					}
				}
				var ended sync.WaitGroup
				b.ResetTimer()
				for _, lock := range all {
					ended.Go(func() {
						for range turns {
							unlock, err := lock()
							if err == nil {
								err = unlock()
							}
							if err != nil {
								b.Error(err)
							}
						}
					})
				}
				ended.Wait()
				b.StopTimer()
			}
		}
		b.Run(kind.name+"/pair", pairs(1))
		b.Run(kind.name+"/8 processes", pairs(8))
	}
}
