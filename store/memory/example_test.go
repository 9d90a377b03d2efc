package memory_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/memory"
)

// Two clients of one node contend, as two processes would.
func Example() {
	node := memory.New(nil)
	client := func() *redlatch.Client {
		c, err := redlatch.New([]redlatch.Node{node}, nil)
		if err != nil {
			log.Fatal(err)
		}
		return c
	}
	a, b := client(), client()
	defer a.Close()
	defer b.Close()

	ctx := context.Background()
	lease, err := a.TryLock(ctx, "orders/42", nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = b.TryLock(ctx, "orders/42", nil)
	fmt.Println("held by another:", errors.Is(err, redlatch.ErrHeld))

	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	err = b.Do(ctx, "orders/42", nil, func(ctx context.Context, l *redlatch.Lease) error {
		fmt.Println("ours, with a higher token:", l.Token() > lease.Token())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// held by another: true
	// ours, with a higher token: true
}

// A quorum tolerates the loss of a minority.
func ExampleNode_SetDown() {
	nodes := memory.Nodes(3)
	locks, err := redlatch.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	down := errors.New("unplugged")
	ctx := context.Background()
	for i, n := range nodes {
		n.(*memory.Node).SetDown(down)
		lease, err := locks.TryLock(ctx, "orders/42", nil)
		switch {
		case err == nil:
			fmt.Println("without", i+1, "of 3: locked")
			err = lease.Release(ctx)
		case errors.Is(err, redlatch.ErrNoQuorum):
			fmt.Println("without", i+1, "of 3: no quorum")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// without 1 of 3: locked
	// without 2 of 3: no quorum
}
