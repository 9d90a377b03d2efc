package zookeeper

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
)

func init() {
	for _, scheme := range []string{"zookeeper", "zookeepers"} {
		node.Register(scheme, "github.com/redlatch/redlatch/store/zookeeper", func(address string) (node.Node, error) { return Open(address, nil) })
	}
}

const form = "zookeeper://[USER:PASSWORD@]HOST[:PORT][+HOST[:PORT]…][/ROOT], or zookeepers://… for TLS"

// Open returns a node for an address:
//
//	zookeeper://USER:PASSWORD@HOST:PORT+HOST:PORT/ROOT?poll=true
//
// The port defaults to 2181, the root to /redlatch. The parameters session, maxbuffer
// and poll are those of Options. With zookeepers in place of zookeeper connections are
// encrypted; tls_ca, tls_cert and tls_key name files in PEM form, and tls_server_name is
// the name in the servers' certificates. What opts has comes first; opts may be nil. The
// node connects when it is first used.
func Open(address string, opts *Options) (*Node, error) {
	o := optional.Value(opts)
	fail := func(bound string) (*Node, error) {
		return nil, &node.ConfigError{Field: "address", Value: "(hidden)", Bound: bound}
	}
	scheme, rest, _ := strings.Cut(address, "://")
	secure := strings.EqualFold(scheme, "zookeepers")
	if !secure && !strings.EqualFold(scheme, "zookeeper") {
		return fail(form)
	}
	// Several hosts are no URL: they are taken out before the rest is read.
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	userinfo, hosts := "", authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		userinfo, hosts = authority[:i+1], authority[i+1:]
	}
	u, err := url.Parse("zookeeper://" + userinfo + "host" + tail)
	if err != nil {
		return fail("an address whose user, password and path are URL-encoded: " + form)
	}
	var servers []string
	for host := range strings.SplitSeq(hosts, "+") {
		h, port, err := net.SplitHostPort(host)
		if err != nil {
			h, port = strings.Trim(host, "[]"), "2181"
		}
		if n, err := strconv.ParseUint(port, 10, 16); h == "" || err != nil || n == 0 || strings.ContainsAny(h, " @,") || strings.Contains(h, ":") && net.ParseIP(h) == nil {
			return fail("an address whose hosts are HOST or HOST:PORT: " + form)
		}
		servers = append(servers, net.JoinHostPort(strings.ToLower(h), port))
	}
	if u.User != nil && o.User == "" {
		o.User = u.User.Username()
		o.Password, _ = u.User.Password()
	}
	o.Root = cmp.Or(o.Root, strings.TrimSuffix(u.Path, "/"))
	if err := o.parameters(u.Query(), secure); err != nil {
		return nil, err
	}
	return newNode(servers, nil, o)
}

// parameters sets what the parameters of an address are for.
func (o *Options) parameters(q url.Values, secure bool) error {
	fail := func(key, bound string) error {
		return &node.ConfigError{Field: key, Value: q.Get(key), Bound: bound}
	}
	for key := range q {
		value := q.Get(key)
		var err error
		switch key {
		case "session":
			var d time.Duration
			if d, err = time.ParseDuration(value); err != nil {
				return fail(key, "a time such as 10s")
			}
			o.Session = cmp.Or(o.Session, d)
		case "maxbuffer":
			var n int
			if n, err = strconv.Atoi(value); err != nil {
				return fail(key, "a number of bytes")
			}
			o.MaxBuffer = cmp.Or(o.MaxBuffer, n)
		case "poll":
			if value != "true" && value != "false" {
				return fail(key, "true or false")
			}
			o.Poll = o.Poll || value == "true"
		case "tls_ca", "tls_cert", "tls_key", "tls_server_name":
			if !secure {
				return fail(key, "with zookeepers://")
			}
		default:
			return fail(key, "one of session, maxbuffer, poll, tls_ca, tls_cert, tls_key and tls_server_name")
		}
	}
	if !secure || o.TLS != nil {
		return nil
	}
	o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: q.Get("tls_server_name")}
	if file := q.Get("tls_ca"); file != "" {
		pem, err := os.ReadFile(file)
		o.TLS.RootCAs = x509.NewCertPool()
		if err != nil || !o.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return fail("tls_ca", "a file with certificates in PEM form")
		}
	}
	if cert, key := q.Get("tls_cert"), q.Get("tls_key"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fail("tls_cert", "a certificate that belongs to tls_key: "+err.Error())
		}
		o.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}
