//go:build !nodirect

package main

import (
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redis/direct"
)

// open returns the nodes as the command does.
func open(addresses ...string) ([]redlatch.Node, error) { return direct.Nodes(addresses...) }
