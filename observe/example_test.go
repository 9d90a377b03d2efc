package observe_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/memory"
)

// printer is an observer.
type printer string

func (p printer) LockStart(ctx context.Context, _ observe.LockStart) context.Context { return ctx }

func (p printer) LockEnd(_ context.Context, end observe.LockEnd) {
	fmt.Println(p, observe.NamePattern(end.Name), observe.Outcome(end.Err))
}

// Two observers of one client. Names that differ in a key have one label.
func ExampleJoin() {
	locks, err := redlatch.New(memory.Nodes(1), &redlatch.Options{Observer: observe.Join(printer("a"), printer("b"))})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()
	for range 2 {
		locks.TryLock(ctx, "orders/42", nil)
	}
	// Output:
	// a orders/* ok
	// b orders/* ok
	// a orders/* held
	// b orders/* held
}
