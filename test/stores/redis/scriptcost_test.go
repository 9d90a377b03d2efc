//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// BenchmarkScripts measures the server's time for the scripts, by INFO
// commandstats: the least mean of several runs, in microseconds.
func BenchmarkScripts(b *testing.B) {
	const runs, calls = 200, 20
	s := servertest.Redis(b, 1)[0]
	nodes, err := direct.Nodes(s.URL())
	must(b, err)
	n := nodes[0]
	defer n.Close()
	guard := &node.Guard{Membership: "0123456789abcdef", Nodes: "a b c", MaxTTL: time.Hour, Window: time.Hour, Quarantine: time.Second}
	off := *guard
	off.Off = true
	do := func(req node.Request, want node.Status) {
		if req.Op != node.OpMark {
			req.TTL, req.Retention, req.Window = time.Minute, time.Hour, time.Hour
		}
		if r, err := n.Do(context.Background(), req); err != nil || r.Status != want {
			b.Fatal(req, r, err)
		}
	}
	token := node.Token(time.Now().UnixMicro())
	next := func() node.Token { token++; return token }
	round := 0
	value := func(i int) string { return fmt.Sprintf("%032x:host/1/label", i) }

	// measured runs f with a number that is new each time, and counts what it
	// sends, but not what before sends.
	measured := func(name string, guard *node.Guard, before, f func(g *node.Guard, i int)) {
		b.Run(name, func(b *testing.B) {
			least := math.Inf(1)
			for b.Loop() {
				least = math.Inf(1)
				for range runs {
					round += calls
					for i := range calls {
						if before != nil {
							before(guard, round+i)
						}
					}
					s.Do("CONFIG", "RESETSTAT")
					for i := range calls {
						f(guard, round+i)
					}
					least = min(least, evalTime(b, s))
				}
			}
			b.ReportMetric(least, "server-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
	acquire := func(g *node.Guard, name string, i int, share node.Share, want node.Status) {
		do(node.Request{Op: node.OpAcquire, Guard: g, Name: name, Value: value(i), Token: next(), Share: share}, want)
	}
	release := func(name string, i int, share node.Share) {
		do(node.Request{Op: node.OpRelease, Name: name, Value: value(i), Token: token, Share: share}, node.Granted)
	}
	for name, g := range map[string]*node.Guard{"guard=on": guard, "guard=off": &off} {
		s.Do("FLUSHALL")
		if !g.Off {
			do(node.Request{Op: node.OpMark, Guard: g, Mark: node.MarkFresh}, node.Granted)
		}
		measured(name+"/pair", g, nil, func(g *node.Guard, i int) {
			acquire(g, "pair", i, node.Share{}, node.Granted)
			release("pair", i, node.Share{})
		})
		acquire(g, "held", -1, node.Share{}, node.Granted)
		measured(name+"/held", g, nil, func(g *node.Guard, i int) { acquire(g, "held", i, node.Share{}, node.Held) })
		measured(name+"/queued", g, nil, func(g *node.Guard, i int) {
			do(node.Request{Op: node.OpAcquire, Guard: g, Name: "held", Value: value(i % 10), Token: next(), Wait: true, Ticket: 1}, node.Held)
		})
		measured(name+"/extend", g, nil, func(g *node.Guard, i int) {
			do(node.Request{Op: node.OpExtend, Guard: g, Name: "held", Value: value(-1), Token: token}, node.Granted)
		})
		hand := func(i int) string { return fmt.Sprint("hand/", i) }
		measured(name+"/hand-over", g, func(g *node.Guard, i int) {
			acquire(g, hand(i), 1, node.Share{}, node.Granted)
			do(node.Request{Op: node.OpAcquire, Guard: g, Name: hand(i), Value: value(2), Token: next(), Wait: true, Ticket: 1}, node.Held)
		}, func(g *node.Guard, i int) {
			release(hand(i), 1, node.Share{})
			do(node.Request{Op: node.OpAcquire, Guard: g, Name: hand(i), Value: value(2), Token: next(), Wait: true, Ticket: 1}, node.Granted)
		})
		for _, members := range []int{10, 1000} {
			reader, shared := node.Share{Mode: node.Shared}, fmt.Sprint("shared/", members)
			for i := range members {
				acquire(g, shared, -i-1, reader, node.Granted)
			}
			measured(fmt.Sprintf("%s/readers=%d/pair", name, members), g, nil, func(g *node.Guard, i int) {
				acquire(g, shared, i, reader, node.Granted)
				release(shared, i, reader)
			})
			measured(fmt.Sprintf("%s/readers=%d/extend", name, members), g, nil, func(g *node.Guard, i int) {
				do(node.Request{Op: node.OpExtend, Guard: g, Name: shared, Value: value(-1 - i%members), Share: reader, Token: token}, node.Granted)
			})
		}
		slot := func(i int) node.Share { return node.Share{Mode: node.Slotted, Slots: 64, Slot: uint8(i)} }
		for i := range 10 {
			acquire(g, "slots", -i-1, slot(i), node.Granted)
		}
		measured(name+"/slots=10/pair", g, nil, func(g *node.Guard, i int) {
			acquire(g, "slots", i, slot(10), node.Granted)
			release("slots", i, slot(10))
		})
	}
}
