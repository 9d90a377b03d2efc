//go:build nodirect

package main

import (
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redis/rueidis"
)

// open returns the nodes as the command of this version does.
func open(addresses ...string) ([]redlatch.Node, error) { return rueidis.Nodes(addresses...) }
