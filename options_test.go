package redlatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

func TestBadOptionsAreRefusedByName(t *testing.T) {
	for field, opts := range map[string]redlatch.Options{
		"TTL":            {TTL: 9 * time.Millisecond},
		"MaxTTL":         {Cluster: redlatch.Cluster{MaxTTL: -time.Second}},
		"MaxHold":        {MaxHold: -1},
		"NodeTimeout":    {NodeTimeout: -time.Millisecond},
		"RetryDelay":     {RetryDelay: -1},
		"FenceRetention": {FenceRetention: 20 * time.Second},
		"Prefix":         {Prefix: "a\nb"},
		"Label":          {Label: strings.Repeat("x", 65)},
	} {
		_, err := redlatch.New(memory.Nodes(3), &opts)
		locktest.WantConfigError(t, err, field)
	}
	for _, common := range []redlatch.Cluster{{Replicas: -2}, {Replicas: 101}, {Replicas: 1} /* the guard is off */} {
		_, err := redlatch.New(memory.Nodes(3), &redlatch.Options{Cluster: common})
		locktest.WantConfigError(t, err, "Replicas")
	}
	_, err := redlatch.New(memory.Nodes(3), &redlatch.Options{TTL: 31 * time.Second})
	locktest.WantConfigError(t, err, "TTL")
	if !strings.Contains(err.Error(), "31s") || !strings.Contains(err.Error(), "30s") {
		t.Errorf("%q does not name value and bound", err)
	}
	c := locktest.NewClient(t, memory.Nodes(1), redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: time.Second}})
	if l := locktest.MustLock(t, c, "job", redlatch.LockOptions{}); l.TTL() != time.Second {
		t.Errorf("with a MaxTTL of 1s the default TTL is %v", l.TTL())
	}
}

func TestBadNamesAreRefusedBeforeAnythingIsSent(t *testing.T) {
	links, c := locktest.New(t, 1, redlatch.Options{Prefix: "locks/"})
	for what, name := range map[string]string{
		"empty":             "",
		"over-long":         strings.Repeat("x", 507),
		"newline":           "a\nb",
		"escape":            "\x1b[31m",
		"C1 control":        "a\u0085b",
		"delete":            "a\x7f",
		"invalid UTF-8":     "a\xff",
		"over-long control": strings.Repeat("\x00", 600),
	} {
		t.Run(what, func(t *testing.T) {
			_, err := c.Lock(context.Background(), name, nil)
			locktest.WantConfigError(t, err, "name")
			_, err = c.LockAll(context.Background(), []string{"a", name}, nil)
			locktest.WantConfigError(t, err, "names[1]")
		})
	}
	_, err := c.LockAll(context.Background(), nil, nil)
	locktest.WantConfigError(t, err, "names")
	if n := links[0].Count(node.OpAcquire); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	locktest.MustLock(t, c, strings.Repeat("x", 506), redlatch.LockOptions{}) // 512 with the prefix
	locktest.MustLock(t, c, "Grüße, {日本} 100%", redlatch.LockOptions{})
}

func TestBadLockOptionsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	const most = 5 * time.Second
	links, c := locktest.New(t, 1, redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: most}})
	for _, bad := range []struct {
		field string
		value any
		opts  redlatch.LockOptions
	}{
		{"TTL", 9 * time.Millisecond, redlatch.LockOptions{TTL: 9 * time.Millisecond}},
		{"TTL", most + 1, redlatch.LockOptions{TTL: most + 1}},
		{"TTL", time.Duration(-1), redlatch.LockOptions{TTL: -1}},
		{"Wait", -time.Second, redlatch.LockOptions{Wait: -time.Second}},
		{"Wait", 876000 * time.Hour, redlatch.LockOptions{Wait: 876000 * time.Hour}},
		{"MaxHold", time.Duration(-1), redlatch.LockOptions{MaxHold: -1}},
		{"Keep", time.Duration(-1), redlatch.LockOptions{Keep: -1}},
		{"Keep", most + 1, redlatch.LockOptions{Keep: most + 1}},
		{"Slots", -1, redlatch.LockOptions{Slots: -1}},
		{"Slots", 65, redlatch.LockOptions{Slots: 65}},
		{"Slots", 2, redlatch.LockOptions{Slots: 2, Shared: true}},
	} {
		_, err := c.Lock(context.Background(), "job", &bad.opts)
		locktest.WantConfigError(t, err, bad.field)
		if said, ok := errors.AsType[*redlatch.ConfigError](err); !ok || said.Value != bad.value {
			t.Errorf("%v: the value is %v, want %v", err, said.Value, bad.value)
		}
	}
	if n := links[0].Count(node.OpAcquire); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestBadMembershipsAreRefused(t *testing.T) {
	one := memory.New(&memory.Options{Name: "one"})
	for what, c := range map[string]struct {
		field string
		nodes []redlatch.Node
	}{
		"none":      {"nodes", nil},
		"too many":  {"nodes", memory.Nodes(16)},
		"nil":       {"nodes[1]", []redlatch.Node{one, nil}},
		"same node": {"nodes[1]", []redlatch.Node{one, one}},
		"same name": {"nodes[2]", []redlatch.Node{one, memory.New(&memory.Options{Name: "two"}), memory.New(&memory.Options{Name: "one"})}},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := redlatch.New(c.nodes, nil)
			locktest.WantConfigError(t, err, c.field)
		})
	}
}

// alias is an address of a server that may have others.
type alias struct {
	*memory.Node
	name string
	down bool
}

func (a *alias) String() string { return a.name }

func (a *alias) Identity(ctx context.Context) (string, time.Time, error) {
	if a.down {
		return "", time.Time{}, errors.New("connection refused")
	}
	return a.Node.Identity(ctx)
}

func TestOneServerUnderTwoNamesIsFoundOut(t *testing.T) {
	one := memory.New(&memory.Options{Name: "one"})
	a, b := &alias{Node: one, name: "a"}, &alias{Node: one, name: "b"}
	_, err := redlatch.New([]redlatch.Node{a, b, memory.New(nil)}, nil)
	locktest.WantConfigError(t, err, "nodes[1]")

	// A server that was down when the client was made is identified before its
	// first request.
	b.down = true
	c := locktest.NewClient(t, []redlatch.Node{a, b}, redlatch.Options{})
	b.down = false
	_, err = c.Lock(context.Background(), "job", nil)
	locktest.WantErr(t, err, redlatch.ErrConfig)
}

// closable counts calls of Close.
type closable struct {
	*alias
	closed int
}

func (n *closable) Close() error {
	n.closed++
	return n.alias.Close()
}

func TestNewThatIsRefusedClosesItsNodes(t *testing.T) {
	for what, opts := range map[string]redlatch.Options{
		"a bad option":                   {TTL: -1},
		"nodes that cannot be guarded":   {Guard: redlatch.GuardOn},
		"one server under several names": {},
	} {
		t.Run(what, func(t *testing.T) {
			one := memory.New(&memory.Options{Name: "one"})
			a, b := &closable{alias: &alias{Node: one, name: "a"}}, &closable{alias: &alias{Node: one, name: "b"}}
			_, err := redlatch.New([]redlatch.Node{a, b}, &opts)
			locktest.WantErr(t, err, redlatch.ErrConfig)
			if a.closed != 1 || b.closed != 1 {
				t.Errorf("the nodes were closed %d and %d times, want once", a.closed, b.closed)
			}
		})
	}
	t.Run("a list with a gap", func(t *testing.T) {
		a := &closable{alias: &alias{Node: memory.New(nil), name: "a"}}
		_, err := redlatch.New([]redlatch.Node{nil, a}, nil)
		locktest.WantConfigError(t, err, "nodes[0]")
		if a.closed != 1 {
			t.Errorf("the node was closed %d times, want once", a.closed)
		}
	})
	t.Run("but Examine leaves them open", func(t *testing.T) {
		a := &closable{alias: &alias{Node: memory.New(nil), name: "a"}}
		admin.Examine(t.Context(), []redlatch.Node{a}, &redlatch.Options{TTL: -1}, nil)
		if a.closed != 0 {
			t.Error("Examine closed a node")
		}
	})
}
