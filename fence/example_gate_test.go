package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/memory"
)

// A gate before something that lives in this process. The first holder lost
// its lock and does not know it yet.
func ExampleGate() {
	locks, err := redlatch.New([]redlatch.Node{memory.New(memory.Options{})}, redlatch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	gate, err := fence.NewGate(fence.GateOptions{})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	acquire := func() redlatch.Token {
		lease, err := locks.Lock(ctx, "printer", redlatch.LockOptions{})
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
