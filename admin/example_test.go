package admin_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/store/memory"
)

// An operator looks at a lock whose holder hangs, and breaks it.
func Example() {
	locks, err := redlatch.New(memory.Nodes(3), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()
	lease, err := locks.Lock(ctx, "report", nil)
	if err != nil {
		log.Fatal(err)
	}

	operator := admin.New(locks)
	all, err := operator.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, lock := range all.Locks {
		fmt.Println(lock.Name, "is", lock.State())
	}
	found, err := operator.Show(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	// If another client has taken the lock meanwhile, it is not broken.
	broken, err := operator.Break(ctx, "report", &admin.BreakOptions{Seen: found.Seen()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the fence was raised:", broken.Token >= lease.Token())
	// Output:
	// report is held
	// the fence was raised: true
}

// New servers are marked once. Ready says which of them grant locks, Quarantined
// which must wait.
func ExampleAdmin_Init() {
	locks, err := redlatch.Open("redis://a:6379,redis://b:6379,redis://c:6379", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()
	operator := admin.New(locks)
	if _, err := operator.Init(ctx, &admin.InitOptions{AssumeFresh: true}); err != nil {
		log.Fatal(err)
	}
	for _, node := range operator.Ready(ctx) {
		fmt.Println(node.Node, node.Left, node.Err)
	}
	fmt.Println(operator.Quarantined())
}

// A page that is refreshed often asks for the nodes' pulse first, and then only
// those that answered.
func ExampleAdmin_Probe() {
	locks, err := redlatch.New(memory.Nodes(3), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()
	operator := admin.New(locks)
	pulse := operator.Probe(ctx)
	all, err := operator.ListAnswering(ctx, pulse)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(pulse.Nodes), "nodes,", len(all.Locks), "locks")
	// Output:
	// 3 nodes, 0 locks
}

// Examine is what redlatch doctor reports.
func ExampleExamine() {
	ctx := context.Background()
	found, err := admin.Examine(ctx, memory.Nodes(3), nil, &admin.ExamineOptions{Samples: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Answered, "of", len(found.Nodes), "nodes answered; a quorum is", found.Need)
	// Output:
	// 3 of 3 nodes answered; a quorum is 2
}
