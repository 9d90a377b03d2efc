//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// networkFaults are the faults of the connections to a server: of all of them,
// or of those of some clients.
var networkFaults = []Family{
	{Name: "partition", About: "cut some or all clients off from a server", node: weather("cut off", func(*rand.Rand) servertest.Weather {
		return servertest.Weather{Requests: lost, Replies: lost}
	})},
	{Name: "swallow", About: "lose only the replies of a server, which has done what it was asked", node: weather("replies are lost", func(*rand.Rand) servertest.Weather {
		return servertest.Weather{Replies: lost}
	})},
	{Name: "delay", About: "have requests and replies arrive late, up to seconds, and overtake each other", node: weather("messages arrive late", func(rng *rand.Rand) servertest.Weather {
		return servertest.Weather{Requests: late(rng), Replies: late(rng)}
	})},
	{Name: "reset", About: "break off all connections of a server", mild: true, node: resetAll},
}

// lost is a direction in which nothing arrives.
var lost = servertest.Direction{Lost: true}

// late delays messages, past the time limit of a node; rarely, past the end of a
// lease, as when packets are dropped for a while and sent again. Messages of
// different connections overtake each other.
func late(rng *rand.Rand) servertest.Direction {
	most := 300 * time.Millisecond
	if rng.IntN(3) == 0 {
		most = 3 * time.Second
	}
	return servertest.Direction{Delay: between(rng, 0, most), Jitter: between(rng, 5*time.Millisecond, 300*time.Millisecond)}
}

// weather affects the connections of some clients, or of all, to a node.
func weather(what string, draw func(*rand.Rand) servertest.Weather) func(*nemesis, *node, *rand.Rand) strike {
	return func(w *nemesis, n *node, rng *rand.Rand) strike {
		links, who := n.links, "on all connections"
		if k := rng.IntN(len(links)) + 1; rng.IntN(3) > 0 && k < len(links) {
			links, who = nil, fmt.Sprintf("on %d of %d connections", k, len(n.links))
			for _, i := range rng.Perm(len(n.links))[:k] {
				links = append(links, n.links[i])
			}
		}
		set := func(x servertest.Weather) error {
			for _, link := range links {
				link.Set(x)
			}
			return nil
		}
		bad := draw(rng)
		return strike{detail: what + " " + who, lasts: between(rng, 200*time.Millisecond, 2*w.bounds.MaxTTL),
			apply: func(*Fault) error { return set(bad) },
			heal:  func(*Fault) error { return set(servertest.Weather{}) }}
	}
}

func resetAll(w *nemesis, n *node, rng *rand.Rand) strike {
	return strike{detail: "all connections are reset", apply: func(*Fault) error {
		for _, link := range n.links {
			link.Reset()
		}
		return nil
	}}
}
