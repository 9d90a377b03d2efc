package zookeeper

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/nodeaddress"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/registry"
)

func init() {
	for _, scheme := range []string{"zookeeper", "zookeepers"} {
		registry.Register(scheme, "github.com/redlatch/redlatch/store/zookeeper", func(address string) (node.Node, error) { return Open(address, nil) })
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
	parts, err := nodeaddress.Parse(address)
	secure := parts.Scheme == "zookeepers"
	servers, ok := parts.Servers("2181")
	switch {
	case !secure && parts.Scheme != "zookeeper":
		return fail(form)
	case err != nil:
		return fail("an address whose user, password and path are URL-encoded: " + form)
	case !ok:
		return fail("an address whose hosts are HOST or HOST:PORT: " + form)
	}
	for i, server := range servers {
		servers[i] = strings.ToLower(server)
	}
	if o.User == "" && parts.User+parts.Password != "" {
		o.User, o.Password = parts.User, parts.Password
	}
	o.Root = cmp.Or(o.Root, strings.TrimSuffix(parts.Path, "/"))
	if err := o.parameters(parts, secure); err != nil {
		return nil, err
	}
	return newNode(servers, nil, o)
}

// parameters sets what the parameters of an address are for.
func (o *Options) parameters(parts *nodeaddress.Address, secure bool) (err error) {
	fail := func(key, bound string) error {
		return &node.ConfigError{Field: key, Value: parts.Parameters[key], Bound: bound}
	}
	for key, value := range parts.Parameters {
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
	var wrong string
	switch o.TLS, wrong, err = parts.TLS(); wrong {
	case "tls_ca":
		return fail(wrong, "a file with certificates in PEM form")
	case "tls_cert":
		return fail(wrong, "a certificate that belongs to tls_key: "+err.Error())
	}
	return nil
}
