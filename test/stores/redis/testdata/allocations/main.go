// Allocations prints how many allocations a pair takes, of Lock and of TryLock,
// each with Release, on the server at an address. It is a program of its own,
// because the race detector makes pools drop what they are given.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing"

	"github.com/redlatch/redlatch"
)

func main() {
	c, err := redlatch.Open(os.Args[1], &redlatch.Options{AssumeFresh: true})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	// A caller that can give up, as most can.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, lock := range []func(context.Context, string, *redlatch.LockOptions) (*redlatch.Lease, error){c.Lock, c.TryLock} {
		fmt.Println(testing.AllocsPerRun(2000, func() {
			l, err := lock(ctx, "pair", nil)
			if err == nil {
				err = l.Release(ctx)
			}
			if err != nil {
				log.Fatal(err)
			}
		}))
	}
}
