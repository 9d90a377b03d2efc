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
		if _, ok := errors.AsType[*node.ConfigError](err); !ok {
			t.Errorf("%s: %v", address, err)
		} else if strings.Contains(address, "secret@") && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows it: %v", address, err)
		}
	}
	if _, err := From(nil, nil); err == nil {
		t.Error("From takes no connection")
	}
}
