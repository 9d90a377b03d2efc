package redis

import (
	"cmp"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/registry"
)

// Options are the settings of a node. The zero value works for Open.
type Options struct {
	// Name is what errors and logs call the node. It is part of the membership:
	// all clients of the same nodes must use the same name for this one, or
	// guarded nodes refuse them. A good name for From is the address of the
	// server, in the form in which other clients write it. Defaults to the
	// address for Open; From needs it.
	Name string
}

// Open returns the node of an address, over the driver that open returns for it.
// Packages direct, rueidis and goredis have it with their drivers.
func Open(address string, opts *Options, open func(*Address) (Driver, error)) (node.Node, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	return openAt(a, cmp.Or(optional.Value(opts).Name, a.String()), open)
}

// openAt returns the node of an address.
func openAt(a *Address, name string, open func(*Address) (Driver, error)) (node.Node, error) {
	d, err := open(a)
	if err != nil {
		return nil, err
	}
	n := New(d, name)
	if a.Kind == Sentinel {
		n.sentinels = a
	}
	return n, nil
}

// OpenAll returns a node for each address, and an error for one that is there
// twice.
func OpenAll(addresses []string, open func(*Address) (Driver, error)) ([]node.Node, error) {
	list, err := ParseAddresses(addresses)
	if err != nil {
		return nil, err
	}
	var nodes []node.Node
	for _, a := range list {
		n, err := openAt(a, a.String(), open)
		if err != nil {
			return nil, err // no driver has connected
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// From returns a node over a driver of a client that the program already has.
func From(driver Driver, opts *Options) (node.Node, error) {
	name := optional.Value(opts).Name
	if name == "" {
		return nil, &node.ConfigError{Field: "Name", Value: name, Bound: "what all clients call this node, such as its address"}
	}
	return New(driver, name), nil
}

// RegisterTopologies makes registry.Open use a driver for Sentinel and Cluster.
func RegisterTopologies(pkg string, open func(*Address) (Driver, error)) {
	for _, scheme := range []string{"redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"} {
		registry.Register(scheme, pkg, func(address string) (node.Node, error) { return Open(address, nil, open) })
	}
}
