package redlatch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/node/registry"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// Open returns a client for the stores with the given addresses, separated by
// commas: one, or three or five independent ones, of which a majority decides.
//
//	locks, err := redlatch.Open("redis://127.0.0.1:6379", nil)
//
// Redis and Valkey servers, redis:// and rediss://, are built in. Any other store is
// a module of its own, and importing it adds its addresses:
//
//	go get github.com/redlatch/redlatch/store/postgres
//
//	import _ "github.com/redlatch/redlatch/store/postgres"      // postgres://HOST/DATABASE
//	import _ "github.com/redlatch/redlatch/store/mysql"         // mysql://HOST/DATABASE, also for MariaDB
//	import _ "github.com/redlatch/redlatch/store/etcd"          // etcd://HOST+HOST+HOST
//	import _ "github.com/redlatch/redlatch/store/zookeeper"     // zookeeper://HOST+HOST+HOST
//	import _ "github.com/redlatch/redlatch/store/sqlite"        // sqlite:FILE
//	import _ "github.com/redlatch/redlatch/store/redis/rueidis" // redis+sentinel://, redis+cluster://
//
// All clients must list the same nodes, and of an etcd cluster, a ZooKeeper ensemble,
// Sentinel or a Cluster the same members: another subset is another membership.
//
// Write %2C for a comma in a password. A store that cannot be reached is no
// error here. New is for programs that bring their own nodes.
func Open(addresses string, opts *Options) (*Client, error) {
	list, err := splitAddresses(addresses)
	if err != nil {
		return nil, err
	}
	var nodes []Node
	for i, address := range list {
		n, err := openNode(address)
		if err != nil {
			for _, n := range nodes {
				n.Close() // nothing was sent
			}
			if len(list) > 1 {
				err = fmt.Errorf("%w (address %d of %d)", err, i+1, len(list))
			}
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return New(nodes, opts)
}

// openNode refers to the driver of Redis directly, and not through the registry:
// a program that does not call Open does not link it.
func openNode(address string) (Node, error) {
	if scheme := registry.Scheme(address); scheme == "redis" || scheme == "rediss" {
		return direct.Open(address, nil)
	}
	return registry.Open(address)
}

// splitAddresses returns the addresses of a list. A password with a comma splits
// an address in two; the error shows neither half.
func splitAddresses(list string) ([]string, error) {
	var all []string
	for address := range strings.SplitSeq(list, ",") {
		if address = strings.TrimSpace(address); address != "" {
			all = append(all, address)
		}
	}
	if len(all) == 0 {
		return nil, &ConfigError{Field: "addresses", Value: list, Bound: "one address or more, such as redis://127.0.0.1:6379"}
	}
	secret := slices.ContainsFunc(all, func(a string) bool { return strings.Contains(a, "@") })
	for i, a := range all {
		if registry.Scheme(a) != "" && strings.Contains(a, ":/") || strings.HasPrefix(a, "sqlite:") {
			continue
		}
		value := a
		if secret {
			value = "(hidden)"
		}
		return nil, &ConfigError{Field: fmt.Sprintf("addresses[%d]", i), Value: value, Bound: "an address with a scheme, such as redis://HOST:PORT; write %2C for a comma in a password"}
	}
	return all, nil
}
