package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/store/memory"
)

// A gate before something that lives in this process. The first holder lost
// its lock and does not know it yet.
func ExampleGate() {
	locks, err := redlatch.New([]redlatch.Node{memory.New(nil)}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	gate, err := fence.NewGate(nil)
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	acquire := func() redlatch.Token {
		lease, err := locks.Lock(ctx, "printer", nil)
		if err != nil {
			log.Fatal(err)
		}
		defer lease.Release(ctx)
		return lease.Token()
	}
	older, newer := acquire(), acquire()

	fmt.Println("newer:", gate.Check(ctx, "printer", newer))
	err = gate.Check(ctx, "printer", older)
	fmt.Println("older is stale:", errors.Is(err, fence.ErrStale))
	// Output:
	// newer: <nil>
	// older is stale: true
}

// Readers do not refuse each other. They refuse a writer that is late, and a
// later writer refuses them.
func ExampleGate_CheckRead() {
	gate, err := fence.NewGate(nil)
	if err != nil {
		log.Fatal(err)
	}
	// Tokens come from Lease.Token. The first two are of leases with
	// LockOptions.Shared.
	ctx := context.Background()
	fmt.Println("reader 12:", gate.CheckRead(ctx, "report", 12))
	fmt.Println("reader 11:", gate.CheckRead(ctx, "report", 11))
	fmt.Println("writer 10:", gate.Check(ctx, "report", 10))
	fmt.Println("writer 13:", gate.Check(ctx, "report", 13))
	fmt.Println("reader 12:", gate.CheckRead(ctx, "report", 12))
	// Output:
	// reader 12: <nil>
	// reader 11: <nil>
	// writer 10: redlatch: token 00000000000000000010 is stale: "report" has seen 00000000000000000012
	// writer 13: <nil>
	// reader 12: redlatch: token 00000000000000000012 is stale: "report" has seen 00000000000000000013
}
