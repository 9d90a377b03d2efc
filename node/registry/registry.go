// Package registry has the schemes of addresses, such as postgres, and the store that
// opens each. Importing a store registers its schemes.
package registry

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redlatch/redlatch/node"
)

// opener is one that a package has registered.
type opener struct {
	pkg  string
	open func(address string) (node.Node, error)
}

var registry = struct {
	mu      sync.Mutex
	schemes map[string][]opener
}{schemes: map[string][]opener{}}

// Register makes Open use a store for a scheme of addresses, in lower case, such as
// postgres. Stores call it when their package is imported; pkg is the import path.
// open gets the whole address. The node connects when it is first used, so a store
// that cannot be reached is no error.
func Register(scheme, pkg string, open func(address string) (node.Node, error)) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	registry.schemes[scheme] = append(registry.schemes[scheme], opener{pkg, open})
}

// Scheme returns what is before the first colon of an address, in lower case;
// "" if there is no colon.
func Scheme(address string) string {
	scheme, _, ok := strings.Cut(address, ":")
	if !ok {
		return ""
	}
	return strings.ToLower(scheme)
}

// Open returns the node of an address, by the store that is registered for its
// scheme. The error for a scheme that nobody has registered names the package to
// import. Errors show no more of the address than its scheme: it may have a
// password in it.
func Open(address string) (node.Node, error) {
	scheme := Scheme(address)
	registry.mu.Lock()
	found := slices.Clone(registry.schemes[scheme])
	registry.mu.Unlock()
	switch len(found) {
	case 1:
		return found[0].open(address)
	case 0:
		return nil, unknown(scheme)
	}
	pkgs := make([]string, len(found))
	for i, o := range found {
		pkgs[i] = o.pkg
	}
	return nil, &node.ConfigError{Field: "address", Value: scheme + ":…", Bound: fmt.Sprintf(
		"opened by one store, but %s are imported: make the nodes with the Open function of one of them", strings.Join(pkgs, " and "))}
}

// stores are the packages that register schemes, for the error without them.
var stores = map[string]string{
	"postgres": "store/postgres", "postgresql": "store/postgres",
	"mysql": "store/mysql", "mariadb": "store/mysql",
	"etcd": "store/etcd", "etcds": "store/etcd",
	"zookeeper": "store/zookeeper", "zookeepers": "store/zookeeper",
	"sqlite":         "store/sqlite",
	"redis+sentinel": "store/redis/rueidis", "rediss+sentinel": "store/redis/rueidis",
	"redis+cluster": "store/redis/rueidis", "rediss+cluster": "store/redis/rueidis",
}

func unknown(scheme string) error {
	if pkg, ok := stores[scheme]; ok {
		return &node.ConfigError{Field: "address", Value: scheme + ":…", Bound: fmt.Sprintf(
			"of a store that is imported: go get github.com/redlatch/redlatch/%[1]s, and add import _ \"github.com/redlatch/redlatch/%[1]s\"", pkg)}
	}
	return &node.ConfigError{Field: "address", Value: scheme, Bound: "an address such as redis://HOST:PORT, postgres://HOST/DATABASE, mysql://HOST/DATABASE, etcd://HOST, zookeeper://HOST or sqlite:FILE"}
}
