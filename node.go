package redlatch

import "github.com/redlatch/redlatch/node"

// Node is one independent place that can grant a lock: see package node, which
// is for those who write one.
type Node = node.Node

// Token is the fencing number of a lease. Of two leases on one name, the one
// whose attempt began after the other was acquired has the higher token. Hand
// it to whatever the lock protects, and have that refuse a token lower than
// the highest it has seen. As text it has 20 digits, which compare like the
// numbers.
type Token = node.Token

// ParseToken reads a token from its decimal form, with or without leading
// zeros.
func ParseToken(s string) (Token, error) { return node.ParseToken(s) }

// ConfigError says which setting is out of bounds.
type ConfigError = node.ConfigError

// NodeResult is what one node answered, or why there is no answer.
type NodeResult = node.Result
