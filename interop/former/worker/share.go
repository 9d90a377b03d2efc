//go:build !noshares

package main

import (
	"strconv"
	"strings"

	"github.com/redlatch/redlatch"
)

// share has a lock be shared, or one of so many slots.
func share(opts *redlatch.LockOptions, kind string) {
	if k, ok := strings.CutPrefix(kind, "s"); ok {
		n, err := strconv.Atoi(k)
		if err != nil {
			fail(err)
		}
		opts.Slots = n
		return
	}
	opts.Shared = kind == "r"
}

func slot(lease *redlatch.Lease) int { return lease.Slot() }
