package postgres

import (
	"net/url"
	"slices"

	"github.com/redlatch/redlatch/node"
)

// Open returns a node for an address as the command takes it:
//
//	postgres://USER@HOST:PORT/DATABASE?table=NAME&poll=true
//
// Its parameters table and poll are those of Options. The others are those of
// package pgx, such as sslmode.
func Open(address string) (*Node, error) {
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"postgres", "postgresql"}, u.Scheme) {
		return nil, &node.ConfigError{Field: "address", Value: "(hidden)", Bound: "postgres://USER@HOST:PORT/DATABASE"}
	}
	parameters := u.Query()
	opts := Options{Table: parameters.Get("table")}
	switch poll := parameters.Get("poll"); poll {
	case "", "false":
	case "true":
		opts.Poll = true
	default:
		return nil, &node.ConfigError{Field: "poll", Value: poll, Bound: "true or false"}
	}
	parameters.Del("table")
	parameters.Del("poll")
	u.RawQuery = parameters.Encode()
	return New(u.String(), opts)
}
