package etcd_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/registry"
	"github.com/redlatch/redlatch/store/etcd"
)

func TestAddresses(t *testing.T) {
	for address, name := range map[string]string{
		"etcd://a":                                 "etcd://a:2379/redlatch",
		"etcd://b:1+a:2+c/ops/locks":               "etcd://a:2+b:1+c:2379/ops/locks",
		"etcd://user:pass%40word@a/x?poll=true":    "etcd://a:2379/x",
		"etcds://[2001:db8::7]:2380+[2001:db8::8]": "etcd://[2001:db8::7]:2380+[2001:db8::8]:2379/redlatch",
	} {
		n, err := registry.Open(address)
		if err != nil || n.String() != name {
			t.Fatalf("%s is %v, want %s: %v", address, n, name, err)
		}
		n.Close()
	}
	for _, address := range []string{
		"etcd:", "etcd://", "etcd://a++b", "etcd://:secret@a", "etcd://a?poll=secret", "etcd://a?tls_ca=secret", "etcds://a?tls_ca=/missing",
		"etcds://a?tls_cert=/missing", "etcd://a/%zz", "etcd://a?%zz", "http://a",
	} {
		if _, err := etcd.Open(address, nil); !errors.Is(err, node.ErrConfig) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := etcd.From(nil, nil); !errors.Is(err, node.ErrConfig) {
		t.Errorf("no client: %v", err)
	}
}
