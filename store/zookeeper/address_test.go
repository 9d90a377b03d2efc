package zookeeper

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func TestAddresses(t *testing.T) {
	for address, name := range map[string]string{
		"zookeeper://a":                              "zookeeper://a:2181/redlatch",
		"zookeeper://C+b:2182+a":                     "zookeeper://a:2181+b:2182+c:2181/redlatch",
		"zookeeper://u:p%40ss@a/apps/locks/":         "zookeeper://a:2181/apps/locks",
		"zookeeper://[2001:db8::7]+[::1]:9/x":        "zookeeper://[2001:db8::7]:2181+[::1]:9/x",
		"ZooKeepers://a?session=5s&maxbuffer=100000": "zookeeper://a:2181/redlatch",
		"zookeeper://a?poll=true":                    "zookeeper://a:2181/redlatch",
	} {
		n, err := Open(address, nil)
		if err != nil || n.String() != name {
			t.Errorf("%s: %v, %v", address, n, err)
			continue
		}
		if o := n.store.opts; (o.TLS != nil) != strings.HasPrefix(address, "ZooKeepers") || o.User != "" && o.digest() != "u:p@ss" || o.TLS != nil && (o.Session != 5*time.Second || o.MaxBuffer != 100000) {
			t.Errorf("%s: %+v", address, o)
		}
		n.Close()
	}
	for _, address := range []string{
		"", "zookeeper", "redis://a", "zookeeper://", "zookeeper://a:secret", "zookeeper://a+", "zookeeper://a:0", "zookeeper://u:secret@a b", "zookeeper://a//x",
		"zookeeper://a?secret=1", "zookeeper://a?session=secret", "zookeeper://a?session=1ms", "zookeeper://a?poll=1", "zookeeper://a?maxbuffer=1", "zookeeper://a?maxbuffer=x",
		"zookeeper://a?tls_ca=x", "zookeepers://a?tls_ca=/missing", "zookeepers://a?tls_cert=/missing", "zookeeper://:secret@a", "zookeeper://u:%zz@a",
	} {
		_, err := Open(address, nil)
		var config *node.ConfigError
		if !errors.As(err, &config) {
			t.Errorf("%s: %v", address, err)
		} else if strings.Contains(address, "secret@") && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows it: %v", address, err)
		}
	}
	if _, err := From(nil, nil); err == nil {
		t.Error("From takes no connection")
	}
}

// TestBookHasTheLastWaiters fills a book.
func TestBookHasTheLastWaiters(t *testing.T) {
	var b book
	waits := func(i int) node.Request {
		return node.Request{Op: node.OpAcquire, Wait: true, Value: strings.Repeat("x", i)}
	}
	of := func(i int) uint64 { return waiterOf(encodeValue(strings.Repeat("x", i))) }
	for i := range mostEntries + 10 {
		b = b.with(waits(i), uint64(i+1))
	}
	if len(b) != mostEntries || b.inbox(of(9)) != 0 || b.inbox(of(10)) != 11 {
		t.Errorf("%d entries", len(b))
	}
	b = b.with(waits(10), 77)
	b = b.with(node.Request{Op: node.OpRelease, Value: strings.Repeat("x", 11)}, 0)
	version, c, state := decode(encode("V1", b, []byte("state")))
	if len(c) != mostEntries-1 || c.inbox(of(10)) != 77 || c.inbox(of(11)) != 0 || version != "V1" || string(state) != "state" {
		t.Errorf("%d entries, version %q, state %q", len(c), version, state)
	}
}
