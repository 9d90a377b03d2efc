package redlatch_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/memory"
	"github.com/redlatch/redlatch/node"
)

func TestHandleFreesTheLockInOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := newLinks(t, 3)
		a, b := newClient(t, nodes, redlatch.Options{}), newClient(t, nodes, redlatch.Options{})
		handle, err := mustLock(t, a, "job", redlatch.LockOptions{NoKeepAlive: true}).Detach()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Free(t.Context(), handle); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantFree(t, links, "job")
		for _, l := range links {
			if n := l.count(node.OpExtend); n > 0 {
				t.Errorf("%v was asked for %d extensions", l, n)
			}
		}
		// The second time it reports that there was nothing to free.
		wantErr(t, b.Free(t.Context(), handle), redlatch.ErrLost)
	})
}

func TestHandleDoesNotFreeAnothersLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.Nodes(3)
		a, b := newClient(t, nodes, redlatch.Options{}), newClient(t, nodes, redlatch.Options{})
		handle, err := mustLock(t, a, "job", redlatch.LockOptions{TTL: time.Second, NoKeepAlive: true}).Detach()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		theirs := mustLock(t, b, "job", redlatch.LockOptions{})
		wantErr(t, a.Free(t.Context(), handle), redlatch.ErrLost)
		if err := theirs.Extend(t.Context()); err != nil {
			t.Errorf("the other's lock: %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		wantErr(t, a.Free(ended, handle), context.Canceled)
		a.Close()
		wantErr(t, a.Free(t.Context(), handle), redlatch.ErrClosed)
	})
}

func TestErrorsDoNotGiveAHandleAway(t *testing.T) {
	c := newClient(t, memory.Nodes(1), redlatch.Options{})
	good := mustLock(t, c, "job", redlatch.LockOptions{}).Handle()
	for _, bad := range []string{good + "!", good[:len(good)-1], strings.TrimPrefix(good, "redlatch1.")} {
		_, err := c.Attach(t.Context(), bad)
		wantErr(t, err, redlatch.ErrConfig)
		if secret := good[20:40]; strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("the error is %v", err)
		}
		if err := c.Free(t.Context(), bad); err == nil || strings.Contains(err.Error(), good[20:40]) {
			t.Errorf("the error is %v", err)
		}
	}
}
