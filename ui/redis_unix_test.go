//go:build unix

package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// TestServersThatFailAndComeBackAreSeen: on real servers, one is frozen, and one
// restarts without its data.
func TestServersThatFailAndComeBackAreSeen(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	open := func(opts redlatch.Options) *redlatch.Client {
		nodes, err := direct.Nodes(servertest.Addresses(servers)...)
		must(t, err)
		opts.MaxTTL, opts.TTL = 5*time.Second, 5*time.Second // the quarantine is a little above 5 s
		c, err := redlatch.New(nodes, &opts)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	holder := open(redlatch.Options{Label: "holder", AssumeFresh: true})
	lease, err := holder.Lock(t.Context(), "job", nil)
	must(t, err)
	page, err := New(open(redlatch.Options{NodeTimeout: time.Second}), &Options{Interval: 100 * time.Millisecond})
	must(t, err)
	w := &world{t: t, page: page}
	f := follow(t, w.serve()+"/events")
	f.until("three nodes and the lock", func() bool {
		return strings.Count(f.list("nodes"), ">in service<") == 3 && strings.Contains(f.list("locks"), tokenText(lease.Token()))
	})
	servers[1].Freeze()
	f.until("that one does not answer", func() bool { return strings.Count(f.list("nodes"), ">no answer<") == 1 })
	f.until("that this is said", func() bool { return strings.Contains(strings.Join(f.said, " "), servers[1].URL()+" does not answer") })
	if !strings.Contains(f.list("locks"), tokenText(lease.Token())) {
		t.Error("the lock is gone, though two of three nodes have it")
	}
	servers[1].Thaw()
	f.until("that it is back", func() bool { return strings.Count(f.list("nodes"), ">in service<") == 3 })

	servers[2].Kill()
	servers[2].Restart() // the guard finds that with the next extension
	f.until("the quarantine with its reason", func() bool {
		nodes := f.list("nodes")
		return strings.Contains(nodes, ">quarantine<") && strings.Contains(nodes, "data-left=") && strings.Contains(nodes, "new, or lost its data")
	})
	f.until("that it is back", func() bool { return strings.Count(f.list("nodes"), ">in service<") == 3 })
	f.until("that both were noted", func() bool {
		return strings.Contains(f.list("lately"), "is quarantined for") && strings.Count(f.list("lately"), "is back in service") >= 2
	})
	if strings.Contains(f.list("lately"), "Not recording") {
		t.Error("a survey that took long counts as one that was not made")
	}
}
