//go:build unix

package nodestate_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rueidisclient "github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

// batching is a driver that sends each request that can be in a batch in one, between
// requests for other names.
type batching struct {
	redis.Subscriber
	conn *resp.Conn
	mu   sync.Mutex
	sent int

	common, engine atomic.Int64 // requests that were decided there
}

func (b *batching) Eval(ctx context.Context, call redis.Call) ([]string, error) {
	if call.Batch == nil {
		return b.Subscriber.Eval(ctx, call)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent++
	before, after := fmt.Sprintf("before/%d", b.sent), fmt.Sprintf("after/%d", b.sent)
	token := node.Token(time.Now().UnixMicro()).String()
	value := append(slices.Clone(call.Args), "")[:2] // and the token
	command := []string{"EVAL", redis.BatchScript.Source, strconv.Itoa(3 + len(call.Batch.Keys)), before, call.Keys[0], after}
	command = append(append(command, call.Batch.Keys...), call.Batch.Args...)
	command = append(command, "r", "nobody", "", call.Item, value[0], value[1], "a", "somebody", token)
	reply, err := b.conn.Do(command...)
	if err != nil || len(reply.Items) != 3 {
		return nil, fmt.Errorf("a batch was replied %q, %w", reply, err)
	}
	item := reply.Items[1]
	if item.Items == nil {
		b.common.Add(1)
		return []string{item.Text}, nil
	}
	b.engine.Add(1)
	var parts []string
	for _, part := range item.Items {
		parts = append(parts, part.Text)
	}
	return parts, nil
}

// inBatches is a Redis server whose requests are sent in batches.
func inBatches(t *testing.T) (opener, func()) {
	server := servertest.Redis(t, 1)[0]
	var all []*batching
	var mu sync.Mutex
	t.Cleanup(func() {
		var common, engine int64
		for _, b := range all {
			common, engine = common+b.common.Load(), engine+b.engine.Load()
		}
		t.Logf("in batches %d requests were common, %d were not", common, engine)
		if !t.Failed() && common+engine > 100 && (common == 0 || engine == 0) {
			t.Errorf("in batches %d requests were common, %d were not", common, engine)
		}
	})
	return func(t *testing.T) node.Node {
		client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
			InitAddress: []string{server.Addr()}, DisableCache: true, DisableRetry: true, ForceSingleClient: true,
		})
		check.Must(t, err)
		d, err := rueidis.Driver(client)
		check.Must(t, err)
		b := &batching{Subscriber: d.(redis.Subscriber)}
		b.conn, err = resp.Dial("tcp", server.Addr())
		check.Must(t, err)
		mu.Lock()
		all = append(all, b)
		mu.Unlock()
		n := redis.New(b, server.URL())
		t.Cleanup(func() {
			n.Close()
			b.conn.Close()
			client.Close()
		})
		return n
	}, func() { server.Do("FLUSHALL") }
}
