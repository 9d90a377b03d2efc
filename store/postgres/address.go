package postgres

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/registry"
)

func init() {
	for _, scheme := range []string{"postgres", "postgresql"} {
		registry.Register(scheme, "github.com/redlatch/redlatch/store/postgres", func(address string) (node.Node, error) { return Open(address, nil) })
	}
}

// Open returns a node for an address:
//
//	postgres://USER@HOST:PORT/DATABASE?table=NAME&poll=true
//
// Its parameters table and poll are those of Options. The others are those of
// package pgx, such as sslmode. A connection string of keywords and values, in
// the form of package pgx, is an address too. The node connects when it is first
// used.
func Open(address string, opts *Options) (*Node, error) {
	o := optional.Value(opts)
	if !strings.Contains(address, "://") {
		return open(address, o)
	}
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"postgres", "postgresql"}, u.Scheme) {
		return nil, &node.ConfigError{Field: "address", Value: "(hidden)", Bound: "postgres://USER@HOST:PORT/DATABASE"}
	}
	parameters := u.Query()
	o.Table = cmp.Or(o.Table, parameters.Get("table"))
	switch poll := parameters.Get("poll"); poll {
	case "", "false":
	case "true":
		o.Poll = true
	default:
		return nil, &node.ConfigError{Field: "poll", Value: poll, Bound: "true or false"}
	}
	parameters.Del("table")
	parameters.Del("poll")
	u.RawQuery = parameters.Encode()
	return open(u.String(), o)
}
