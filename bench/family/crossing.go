package family

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/system"
	"github.com/redlatch/redlatch/internal/fresh"
)

// Crossing is three contenders that ask three healthy servers for one of two
// slots, each of them slowly connected to another server. So each server has
// the requests of two others first, and two of each contender's three requests
// come in time:
//
//	first server:  1, 2, then 3
//	second server: 2, 3, then 1
//	third server:  3, 1, then 2
//
// A semaphore that counts its holders on each server by itself lets all three
// in: each of them has a majority, and no server has more than two.
const (
	crossingSlots = 2
	crossingDelay = 100 * time.Millisecond
	// crossingAsk is how long they ask. It is shorter than they hold, so those
	// who get a slot hold it at the same time.
	crossingAsk  = 800 * time.Millisecond
	crossingHeld = 1200 * time.Millisecond
	// crossingList names the servers, which contenders reach by different
	// addresses.
	crossingList = "crossing"
)

// Crossings is what came of the crossing arrivals.
type Crossings struct {
	Peer
	Version string
	// Holders is how many held a slot at the same moment, in each try.
	Holders []int
	Failed  string
}

// Most returns the most holders of all tries.
func (c Crossings) Most() int {
	most := 0
	for _, n := range c.Holders {
		most = max(most, n)
	}
	return most
}

// Above returns how many tries had more holders than slots.
func (c Crossings) Above() int {
	above := 0
	for _, n := range c.Holders {
		if n > crossingSlots {
			above++
		}
	}
	return above
}

// Cross tries the crossing arrivals with a peer of slots on three servers.
func Cross(ctx context.Context, p Peer, module string, times int) Crossings {
	c := Crossings{Peer: p}
	if err := c.run(ctx, module, times); err != nil {
		c.Failed = err.Error()
	}
	return c
}

func (c *Crossings) run(ctx context.Context, module string, times int) error {
	redis, err := server.StartRedis(ctx, 3)
	if err != nil {
		return err
	}
	defer redis.Stop()
	if c.Ours {
		if err := prepareCrossing(ctx, redis.Addresses()); err != nil {
			return err
		}
	}
	var configs []Config
	for i := range 3 {
		addresses := redis.Addresses()
		// Contender 0 is slow to the second server, 1 to the third, 2 to the
		// first.
		slow := (i + 1) % 3
		link, err := startLink(addresses[slow], crossingDelay)
		if err != nil {
			return err
		}
		defer link.close()
		addresses[slow] = link.address()
		configs = append(configs, Config{
			Peer: c.Key, Addresses: addresses, Contenders: 1, First: int32(i), Limit: crossingSlots,
			HeldMS: int(crossingHeld.Milliseconds()), TTLMS: int(system.TTL.Milliseconds()), NodeList: crossingList,
		})
	}
	t, err := startTeam(ctx, c.Peer, module, configs)
	if err != nil {
		return err
	}
	defer t.stop()
	c.Version = t.version
	for n := range times {
		start := clock.Now() + int64(lead)
		o := Order{Name: fmt.Sprintf("crossing/%d", n), Start: start, End: start + int64(crossingAsk)}
		if err := t.begin(o); err != nil {
			return err
		}
		history, done, err := t.finish(o)
		if err != nil {
			return err
		}
		if done.Errors > 0 {
			return fmt.Errorf("%d calls failed, the first: %s", done.Errors, done.Error)
		}
		c.Holders = append(c.Holders, history.Seen().Readers)
	}
	return nil
}

func prepareCrossing(ctx context.Context, addresses []string) error {
	client, err := newRedlatch(addresses, redlatch.Options{TTL: system.TTL, NodeList: crossingList})
	if err != nil {
		return err
	}
	defer client.Close()
	return fresh.Declare(ctx, client)
}

// Crosses reports whether the crossing arrivals are tried with a peer.
func (p Peer) Crosses() bool {
	return p.Situation == Slots && p.Nodes == 3 && (p.Key == "redlatch" || p.Key == "semaphore")
}
