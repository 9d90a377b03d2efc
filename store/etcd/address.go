package etcd

import (
	"cmp"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/nodeaddress"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/registry"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func init() {
	for _, scheme := range []string{"etcd", "etcds"} {
		registry.Register(scheme, "github.com/redlatch/redlatch/store/etcd", func(address string) (node.Node, error) { return Open(address, nil) })
	}
}

const forms = "etcd://[USER:PASSWORD@]HOST[:PORT][+HOST[:PORT]…][/PREFIX], or etcds://… for TLS"

// defaultPort is that of etcd's clients.
const defaultPort = "2379"

// Open returns a node for an address:
//
//	etcd://USER:PASSWORD@HOST:PORT+HOST:PORT/PREFIX?poll=true
//
// The hosts are members of one cluster; the port defaults to 2379. With etcds in place
// of etcd the connection is encrypted; tls_ca, tls_cert and tls_key name PEM files, and
// tls_server_name is the name to expect. The node connects when it is first used.
func Open(address string, opts *Options) (*Node, error) {
	o := optional.Value(opts)
	config, err := parse(address, &o)
	if err != nil {
		return nil, err
	}
	s := newStore(config.Endpoints, o)
	s.config, s.lines = config, newLines(config, config.TLS)
	return newNode(s, o), nil
}

// parse reads an address. Its errors do not show it: it may have a password.
func parse(address string, o *Options) (*clientv3.Config, error) {
	fail := func(field, bound string) (*clientv3.Config, error) {
		return nil, &node.ConfigError{Field: field, Value: "(hidden)", Bound: bound}
	}
	parts, err := nodeaddress.Parse(address)
	secure := parts.Scheme == "etcds"
	servers, ok := parts.Servers(defaultPort)
	if !secure && parts.Scheme != "etcd" || err != nil || !ok || parts.User == "" && parts.Password != "" {
		return fail("address", forms)
	}
	o.Prefix = cmp.Or(o.Prefix, strings.TrimPrefix(parts.Path, "/"))
	config := &clientv3.Config{
		DialTimeout: 2 * time.Second, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		Logger: zap.NewNop(), Username: parts.User, Password: parts.Password,
	}
	protocol := map[bool]string{false: "http://", true: "https://"}[secure]
	for _, server := range servers {
		config.Endpoints = append(config.Endpoints, protocol+server)
	}
	for key, value := range parts.Parameters {
		switch {
		case key == "poll" && (value == "true" || value == "false"):
			o.Poll = o.Poll || value == "true"
		case secure && (key == "tls_ca" || key == "tls_cert" || key == "tls_key" || key == "tls_server_name"):
		default:
			return fail("address", "with the parameters poll=true or false, and for etcds: tls_ca, tls_cert, tls_key and tls_server_name, not "+key)
		}
	}
	if !secure {
		return config, nil
	}
	tls, wrong, err := parts.TLS()
	switch config.TLS = tls; wrong {
	case "tls_ca":
		err = &node.ConfigError{Field: wrong, Value: parts.Parameters[wrong], Bound: "a file with PEM certificates"}
	case "tls_cert":
		err = &node.ConfigError{Field: wrong, Value: parts.Parameters[wrong], Bound: "a PEM file, with its key in tls_key: " + err.Error()}
	}
	return config, err
}
