package redis

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/node"
)

func TestAddressesAreRead(t *testing.T) {
	for text, want := range map[string]Address{
		"redis://a":                       {Kind: Single, Hosts: []string{"a:6379"}},
		"redis://a:1/3":                   {Kind: Single, Hosts: []string{"a:1"}, Database: 3},
		"redis://[::1]:7000":              {Kind: Single, Hosts: []string{"[::1]:7000"}},
		"redis://[::1]":                   {Kind: Single, Hosts: []string{"[::1]:6379"}},
		"redis://u:p%40%2Fss@a":           {Kind: Single, Hosts: []string{"a:6379"}, Username: "u", Password: "p@/ss"},
		"redis://:pw@a/":                  {Kind: Single, Hosts: []string{"a:6379"}, Password: "pw"},
		"redis://a?caller_reads=off":      {Kind: Single, Hosts: []string{"a:6379"}, NoCallerReads: true},
		"redis://a?caller_reads=on":       {Kind: Single, Hosts: []string{"a:6379"}},
		"redis+cluster://a:7000+b:7001+c": {Kind: Cluster, Hosts: []string{"a:7000", "b:7001", "c:6379"}},
		"redis+sentinel://u:p@a+b:1/main/2?sentinel_user=s&sentinel_password=t": {Kind: Sentinel, Hosts: []string{"a:26379", "b:1"},
			Master: "main", Database: 2, Username: "u", Password: "p", SentinelUsername: "s", SentinelPassword: "t"},
	} {
		got, err := ParseAddress(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, want %+v", text, *got, want)
		}
	}
	secure, err := ParseAddress("rediss://a?tls_server_name=b")
	if err != nil || secure.TLS == nil || secure.TLS.ServerName != "b" || secure.String() != "rediss://a:6379" {
		t.Errorf("got %+v, %v", secure, err)
	}
}

func TestBadAddressesAreRefusedWithoutTheirSecrets(t *testing.T) {
	for _, text := range []string{
		"", "a:6379", "http://a", "redis:", "redis://", "redis://:6379", "redis://a:0", "redis://a:65536", "redis://a:b",
		"redis://a/x", "redis://a/-1", "redis://a/1/2", "redis://a+b", "redis+sentinel://a", "redis+cluster://a/1", "redis+other://a",
		"redis://u:secret@", "redis://u:secret@a:b", "redis://u:sec/ret@a:b", "redis://u:%zzsecret@a", "redis://u:secret@a?x=secret", "u:secret@a",
		"redis://a?tls_ca=x", "redis://a?caller_reads=", "redis://a?caller_reads=no", "rediss://a?tls_ca=/does/not/exist", "rediss://a?tls_cert=/does/not/exist", "redis://a b", "redis://a#b",
	} {
		_, err := ParseAddress(text)
		if _, ok := errors.AsType[*node.ConfigError](err); !ok {
			t.Errorf("%q: got %v, want a ConfigError", text, err)
			continue
		}
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "ret@") {
			t.Errorf("%q: the error shows the password: %v", text, err)
		}
	}
	for text, says := range map[string]string{
		"localhost:6379":                         "must be redis://localhost:6379, or rediss://localhost:6379 with TLS",
		"redis:6379":                             "must be redis://redis:6379,",
		"[::1]:6379/2":                           "must be redis://[::1]:6379/2,",
		"10.0.0.7":                               "must be redis://10.0.0.7,",
		"redis://a redis://b":                    "separate addresses by a comma",
		"localhost:1 localhost:2":                "separate addresses by a comma",
		"redis://u:secret@a\tredis://u:secret@b": "separate addresses by a comma",
		"user:pass":                              "must be redis://host:port/database",
	} {
		_, err := ParseAddress(text)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want an error that says %q", text, err, says)
		}
	}
	_, err := ParseAddresses([]string{"redis://a", "redis://b", "redis://u:p@a:6379"})
	if err == nil || !strings.Contains(err.Error(), "duplicate address redis://a:6379") {
		t.Errorf("the same address twice: %v", err)
	}
}
