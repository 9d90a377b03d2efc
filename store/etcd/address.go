package etcd

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func init() {
	for _, scheme := range []string{"etcd", "etcds"} {
		node.Register(scheme, "github.com/redlatch/redlatch/store/etcd", func(address string) (node.Node, error) { return Open(address, nil) })
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
	scheme, rest, _ := strings.Cut(address, "://")
	secure := strings.EqualFold(scheme, "etcds")
	if !secure && !strings.EqualFold(scheme, "etcd") {
		return fail("address", forms)
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, prefix, _ := strings.Cut(rest, "/")
	prefix, err := url.PathUnescape(prefix)
	if err != nil {
		return fail("address", forms)
	}
	o.Prefix = cmp.Or(o.Prefix, prefix)
	config := &clientv3.Config{
		DialTimeout: 2 * time.Second, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		Logger: zap.NewNop(),
	}
	if at := strings.LastIndex(hosts, "@"); at >= 0 {
		user, password, _ := strings.Cut(hosts[:at], ":")
		hosts = hosts[at+1:]
		var err1, err2 error
		config.Username, err1 = url.PathUnescape(user)
		config.Password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil || config.Username == "" {
			return fail("address", forms)
		}
	}
	protocol := "http://"
	if secure {
		protocol = "https://"
	}
	for host := range strings.SplitSeq(hosts, "+") {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name, port = strings.Trim(host, "[]"), defaultPort
		}
		if name == "" || port == "" || strings.ContainsAny(name, " @?#") {
			return fail("address", forms)
		}
		config.Endpoints = append(config.Endpoints, protocol+net.JoinHostPort(name, port))
	}
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return fail("address", forms)
	}
	files := map[string]string{}
	for key, values := range parameters {
		value := values[len(values)-1]
		switch {
		case key == "poll" && (value == "true" || value == "false"):
			o.Poll = o.Poll || value == "true"
		case secure && (key == "tls_ca" || key == "tls_cert" || key == "tls_key" || key == "tls_server_name"):
			files[key] = value
		default:
			return fail("address", "with the parameters poll=true or false, and for etcds: tls_ca, tls_cert, tls_key and tls_server_name, not "+key)
		}
	}
	if secure {
		if config.TLS, err = secureBy(files); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// secureBy returns the settings of TLS.
func secureBy(files map[string]string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: files["tls_server_name"]}
	if file := files["tls_ca"]; file != "" {
		pem, err := os.ReadFile(file)
		if c.RootCAs = x509.NewCertPool(); err != nil || !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &node.ConfigError{Field: "tls_ca", Value: file, Bound: "a file with PEM certificates"}
		}
	}
	if files["tls_cert"] != "" || files["tls_key"] != "" {
		pair, err := tls.LoadX509KeyPair(files["tls_cert"], files["tls_key"])
		if err != nil {
			return nil, &node.ConfigError{Field: "tls_cert", Value: files["tls_cert"], Bound: "a PEM file, with its key in tls_key: " + err.Error()}
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
