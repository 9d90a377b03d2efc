//go:build noshares

package main

import (
	"fmt"

	"github.com/redlatch/redlatch"
)

// share fails: this version has no shares.
func share(_ *redlatch.LockOptions, kind string) {
	fail(fmt.Errorf("this version does not know the kind %q", kind))
}

func slot(*redlatch.Lease) int { return 0 }
