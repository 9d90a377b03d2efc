package redis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/risk"
)

// saying is a driver whose server sends one reply, and after that nothing new.
type saying struct {
	kind  Kind
	reply []string
	then  []string // nil for the same again
	said  int
}

func (d *saying) Eval(ctx context.Context, _ Call) ([]string, error) {
	d.said++
	if d.said > 200 {
		return nil, errors.New("it is asked without end")
	}
	if d.said > 1 && d.then != nil {
		return d.then, nil
	}
	return d.reply, ctx.Err()
}

func (d *saying) Kind() Kind   { return d.kind }
func (d *saying) Close() error { return nil }

// earliest and latest limit what a server's clock may show.
var earliest, latest = time.Unix(0, 0), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// checkReply complains about a reply that cannot be used.
func checkReply(t testing.TB, said []string, r node.Reply) {
	t.Helper()
	if r.Status == 0 || r.Status.String() == "unknown status" || r.Fence > node.MaxToken || r.HolderToken > node.MaxToken || r.Left < node.NoExpiry || r.Rank < 0 ||
		r.Now.Before(earliest) || !r.Now.Before(latest) || r.Wakes {
		t.Errorf("%q is read as %+v", said, r)
	}
	if r.Share.Check() != nil || r.Holders < 0 || (r.Status == node.Held) != (r.Holders > 0) {
		t.Errorf("%q is read as %+v", said, r)
	}
	if (r.Status == node.Granted) != (r.Server != "") && r.Server != "" {
		t.Errorf("%q names a server that granted nothing: %+v", said, r)
	}
}

// checkError complains about an error that cannot be shown, or that says that
// nothing was sent: a server that answers with nonsense may have executed
// anything.
func checkError(t testing.TB, said []string, err error) {
	t.Helper()
	if !presentable(err) || !strings.HasPrefix(err.Error(), "redlatch: ") || errors.Is(err, node.ErrUnsent) {
		t.Errorf("%q: %q", said, err)
	}
}

// operations are all requests for a lock.
var operations = []node.Op{
	node.OpAcquire, node.OpExtend, node.OpRelease, node.OpRepair, node.OpInspect, node.OpYield, node.OpBreak,
}

// groupOfTwo is a group with two of two slots taken.
const groupOfTwo = "redlatch-group-2 " + "00002" + "1794740065009426" + "1794740065009427" +
	"1794740065009426" + "00001794740038819640" + "s02" + "01" + "00001" + "v" +
	"1794740065009427" + "00000000000000000000" + "s02" + "00" + "00001" + "w"

// FuzzReplies has a server reply with arbitrary bytes to every request. The
// parts of a reply are separated by a zero.
func FuzzReplies(f *testing.F) {
	const marker = "3 dd4b68befc31fa69359eaf9de7af049cd651e0ab 00000002 8fd65869eaf57c00 2000 500000 2133 1 2000 1794740042136691 changed 1 0d0c0b0a - member - 2133 redis://a:1"
	for i, parts := range [][]string{
		{"granted", "dd4b68befc31fa69359eaf9de7af049cd651e0ab", "0", "00001794740038819640", "1794740045", "9426", "0"},
		{"granted", "", "0", "", "1794740045", "9426"}, {"1794740045009426"}, {"253402300800000000"},
		{"held", "v", "-1", "", "1763000000", "999999", "3"},
		{"held", "v", "9223372036854775807", "99999999999999999999", "9223372036854775807", "9223372036854775807", "-1"},
		{"held", "v", "10", "00001794740038819640 00001794740038819631", "1794740045", "9426"},
		{"held", "v", "10", "00001794740038819640 ", "1794740045", "9426"},
		{"held", "v", "10", "00001794740038819640 00000000000000000000 00001794740038819631", "1794740045", "9426"},
		{"held", groupOfTwo, "10", "00001794740038819640", "1794740045", "9426", "0", "", "00"},
		{"held", groupOfTwo, "10", "00001794740038819640", "1994740045", "9426"},
		{"held", groupOfTwo + "x", "10", "00001794740038819640", "1794740045", "9426"},
		{"held", "redlatch-group-2 ", "10", "00001794740038819640", "1794740045", "9426"},
		{"granted", "", "0", "00001794740038819640", "1794740045", "9426", "0", "01", "10"},
		{"granted", "", "0", "00001794740038819640", "1794740045", "9426", "0", "02", "102"},
		{"1794740045", "9426", "held", groupOfTwo, "10", "00001794740038819640", "1", "1", "1794740045009426", "s02\x01w\x01inbox"},
		{"foreign", "hash", "-2", "x", "-1", "-1"}, {"quarantine", "new", "2133", "", "1794740045", "9426"},
		{"config", marker, "0", "", "1794740045", "9426"}, {"absent", marker, "0", "", "1794740045", "1000000"},
		{"0", "redlatch:1:fence:{a}", "redlatch:1:queue:::a"}, {"17", "redlatch:1:fence:{a}"},
		{"1794740045", "9426", "held", "v", "10", "00001794740038819640", "1", "1", "1794740045009426", "w\x01inbox"},
		{"1794740045", "9426", "absent", "", "0", "", "-1", "0"},
		{"1794740045", "9426", "absent", "", "0", "", "1", "1", "NaN", "w"},
		{"1794740045", "9426", "absent", "", "0", "", "1", "1", "1e300", "w"},
		{"# Server\r\nredis_version:7.0.15\r\n", "role:master\r\nconnected_slaves:1", "aof_enabled:1", "maxmemory:100\r\nmaxmemory_policy:noeviction\r\nused_memory:99"},
		{"", "", "", ""}, {"dd4b68be", "100", "allkeys-lru", "1794740045", "9426"},
		{"", "", "", "1794740045", "9426"}, {"0", "5461", "10923"}, {"16384"}, {"-1"}, {},
	} {
		f.Add(uint8(i), strings.Join(parts, "\x00"))
	}
	f.Fuzz(func(t *testing.T, kind uint8, text string) {
		var said []string
		if text != "" {
			said = strings.Split(text, "\x00")
		}
		ctx := context.Background()
		kinds := []Kind{Single, Sentinel, Cluster}
		d := &saying{kind: kinds[int(kind)%len(kinds)], reply: said}
		guard := &node.Guard{Membership: "8fd65869eaf57c00", Nodes: "redis://a:1", MaxTTL: 2 * time.Second, Window: time.Second, Quarantine: 3 * time.Second}
		for _, op := range operations {
			d.said = 0
			n := New(d, "node")
			req := node.Request{Op: op, Name: "job", Value: "v", TTL: time.Second, Fencing: node.Fencing{Token: 1}, Waiting: node.Waiting{Wait: true, Ticket: 1}, Guard: guard}
			for _, share := range []node.Share{{}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 2}} {
				d.said, req.Share = 0, share
				if reply, err := n.Do(ctx, req); err != nil {
					checkError(t, said, err)
				} else {
					checkReply(t, said, reply)
				}
			}
		}
		d.said = 0
		if r, err := New(d, "node").Mark(ctx, node.MarkRequest{Name: "job", Guard: guard}); err != nil {
			checkError(t, said, err)
		} else {
			checkReply(t, said, node.Reply{Status: r.Status, Left: r.Left, Now: r.Now, Marker: r.Marker})
		}
		if id, now, err := New(d, "node").Identity(ctx); err != nil {
			checkError(t, said, err)
		} else if now.Before(earliest) || !now.Before(latest) || len(said) != 5 || id != said[0] {
			t.Errorf("%q is read as the identity %q at %v", said, id, now)
		}
		if l, err := New(d, "node").Look(ctx, "job"); err != nil {
			checkError(t, said, err)
		} else {
			checkListing(t, said, l)
		}
		// As a step of a scan, as what is found there, and as the masters of a
		// cluster.
		for _, then := range [][]string{{"0"}, said} {
			d := &saying{kind: d.kind, reply: said, then: then}
			if d.kind == Cluster && len(said) > 100 {
				continue
			}
			err := New(d, "node").List(ctx, "", func(l node.Listing) { checkListing(t, said, l) })
			if err != nil && !strings.Contains(err.Error(), "without end") {
				checkError(t, said, err)
			}
		}
		d.said = 0
		found, err := New(d, "node").Examine(ctx, risk.Exam{Name: "probe"})
		if err != nil {
			checkError(t, said, err)
		}
		for _, x := range found {
			if x.Severity > risk.Fine && (x.Found == "" || x.Do == "") {
				t.Errorf("%q: a finding does not say what to do: %+v", said, x)
			}
		}
	})
}

func checkListing(t testing.TB, said []string, l node.Listing) {
	t.Helper()
	checkReply(t, said, l.Reply)
	if len(l.Holders) != l.Reply.Holders || l.Waiting < 0 || len(l.Waiters) > node.MaxListed {
		t.Errorf("%q is read as %+v", said, l)
	}
	for _, w := range l.Waiters {
		if w.Ticket < 0 || w.Ticket > int64(node.MaxToken) {
			t.Errorf("%q names a waiter with the ticket %d", said, w.Ticket)
		}
	}
	if len(l.Completed) > node.MaxListed || !l.Since.IsZero() && (l.Since.Before(earliest) || !l.Since.Before(latest)) {
		t.Errorf("%q is read as %d marks, remembered since %v", said, len(l.Completed), l.Since)
	}
	for _, m := range l.Completed {
		if until := l.Reply.Now.Add(m.Left); until.Before(earliest) || !until.Before(latest) {
			t.Errorf("%q has a mark until %v", said, until)
		}
	}
}
