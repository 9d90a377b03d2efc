package redlatch

import "github.com/redlatch/redlatch/node"

// Node is one independent store that can grant a lock. Package node, which is
// for authors of nodes, defines it.
type Node = node.Node

// Token is the fencing number of a lease. Of two leases on one name, the one
// whose attempt began after the other was acquired has the higher token. Pass
// it to the resource that the lock protects, and let the resource refuse a
// token lower than the highest it has seen. As text it has 20 digits, which
// compare like the numbers.
type Token = node.Token

// ConfigError says which setting is not valid.
type ConfigError = node.ConfigError
