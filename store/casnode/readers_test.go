package casnode

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func TestReaderBeyondTheLimitIsRefusedWithTheLimit(t *testing.T) {
	n := New(newTable(time.Now), nil)
	ask := func(op node.Op, i int) (node.Reply, error) {
		return n.Do(context.Background(), node.Request{Op: op, Name: "doc", Value: fmt.Sprintf("%032x:reader", i), TTL: time.Hour,
			Fencing: node.Fencing{Retention: time.Hour, Window: time.Hour}, Share: node.Share{Mode: node.Shared}})
	}
	for i := range MaxReaders {
		if r, err := ask(node.OpAcquire, i); err != nil || r.Status != node.Granted {
			t.Fatalf("reader %d: %v, %v", i, r.Status, err)
		}
	}
	if _, err := ask(node.OpAcquire, MaxReaders); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d readers", MaxReaders)) {
		t.Errorf("one too many: %v", err)
	}
	for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpRelease} {
		if r, err := ask(op, 7); err != nil || r.Status != node.Granted {
			t.Errorf("%v of one of them: %v, %v", op, r.Status, err)
		}
	}
	if r, err := ask(node.OpAcquire, MaxReaders); err != nil || r.Status != node.Granted {
		t.Errorf("after one has left: %v, %v", r.Status, err)
	}
}
