package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/memory"
)

// Do runs a function under a lock, and releases the lock however the function
// ends.
func ExampleClient_Do() {
	// In a program: direct.Nodes("redis://a:6379", "redis://b:6379", "redis://c:6379").
	locks, err := redlatch.New(memory.Nodes(3), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(context.Background(), "orders/42", nil, func(ctx context.Context, lease *redlatch.Lease) error {
		// ctx ends before another client can get the lock. Pass the token to
		// the resource that is written to.
		fmt.Println(lease.Name(), "has a token:", lease.Token() > 0)
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// orders/42 has a token: true
	// error: <nil>
}

// TryDo runs a function if the lock is free, and skips it if another client holds
// the lock.
func ExampleClient_TryDo() {
	nodes := memory.Nodes(3)
	first, err := redlatch.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	second, err := redlatch.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()

	ran, err := first.TryDo(context.Background(), "cleanup", nil, func(ctx context.Context, _ *redlatch.Lease) error {
		ran, err := second.TryDo(ctx, "cleanup", nil, func(context.Context, *redlatch.Lease) error { return nil })
		fmt.Println("the second ran:", ran, err)
		return nil
	})
	fmt.Println("the first ran:", ran, err)
	// Output:
	// the second ran: false <nil>
	// the first ran: true <nil>
}

// clientOf returns a client of nodes in memory, for examples of what it can do.
func clientOf(nodes []redlatch.Node) *redlatch.Client {
	locks, err := redlatch.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
	return locks
}

// Lock waits as long as its context and options allow, and returns the lease
// itself.
func ExampleClient_Lock() {
	locks := clientOf(memory.Nodes(1))
	defer locks.Close()

	lease, err := locks.Lock(context.Background(), "orders/42", &redlatch.LockOptions{TTL: 5 * time.Second, Wait: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	select {
	case <-lease.Context().Done():
		fmt.Println("lost:", context.Cause(lease.Context()))
	default:
		fmt.Println("still ours")
	}
	fmt.Println("released:", lease.Release(context.Background()) == nil)
	// Output:
	// still ours
	// released: true
}

// TryLock asks once. The error says who holds the lock, and when it expires.
func ExampleClient_TryLock() {
	nodes := memory.Nodes(3)
	first, err := redlatch.New(nodes, &redlatch.Options{Label: "nightly"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	second := clientOf(nodes)
	defer second.Close()

	lease, err := first.TryLock(context.Background(), "report", nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = second.TryLock(context.Background(), "report", nil)
	var held *redlatch.HeldError
	if errors.As(err, &held) {
		h := held.Holders[0]
		fmt.Println("held by the first:", h.Owner == lease.Owner(), "for less than 10s:", h.Left <= 10*time.Second)
	}
	// Output:
	// held by the first: true for less than 10s: true
}

// Detach returns a lease as text. Another process, for example, can attach it.
func ExampleClient_Attach() {
	nodes := memory.Nodes(3)
	ours := clientOf(nodes)
	defer ours.Close()
	theirs := clientOf(nodes)
	defer theirs.Close()

	lease, err := ours.Lock(context.Background(), "deploy", nil)
	if err != nil {
		log.Fatal(err)
	}
	handle, err := lease.Detach()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("here:", context.Cause(lease.Context()))

	taken, err := theirs.Attach(context.Background(), handle)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("there, with the same token:", taken.Token() == lease.Token())
	// Output:
	// here: redlatch: lease is detached
	// there, with the same token: true
}

func ExampleLockOptions_keep() {
	locks := clientOf(memory.Nodes(3))
	defer locks.Close()
	warm := func(ctx context.Context) error {
		// snippet: keep
		opts := &redlatch.LockOptions{Keep: 20 * time.Second, Wait: 100 * time.Millisecond}
		err := locks.Do(ctx, "warm-cache", opts, func(ctx context.Context, lease *redlatch.Lease) error {
			fmt.Println("the job")
			return nil
		})
		if errors.Is(err, redlatch.ErrHeld) {
			return nil // another machine runs it, or has just run it
		}
		return err
		// end snippet
	}
	fmt.Println(warm(context.Background()))
	fmt.Println(warm(context.Background()))
	// Output:
	// the job
	// <nil>
	// <nil>
}

// counter is an Observer that counts.
type counter struct{ locks, failures int }

func (c *counter) LockStart(ctx context.Context, _ observe.LockStart) context.Context { return ctx }

func (c *counter) LockEnd(_ context.Context, end observe.LockEnd) {
	c.locks++
	if end.Err != nil {
		c.failures++
	}
}

func ExampleObserver() {
	seen := &counter{}
	locks, err := redlatch.New(memory.Nodes(1), &redlatch.Options{Observer: seen})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	locks.TryLock(context.Background(), "job", nil)
	locks.TryLock(context.Background(), "job", nil)
	fmt.Println(seen.locks, "asked for,", seen.failures, "refused")
	// Output:
	// 2 asked for, 1 refused
}

// Open makes a client of the servers whose addresses it gets, separated by
// commas.
func ExampleOpen() {
	locks, err := redlatch.Open("redis://a:6379,redis://b:6379,redis://c:6379", &redlatch.Options{Label: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	for _, node := range locks.Nodes() {
		fmt.Println(node.Node)
	}
}

// Lead runs a function in one process of many.
func ExampleClient_Lead() {
	locks := clientOf(memory.Nodes(3))
	defer locks.Close()

	ctx, stop := context.WithCancel(context.Background())
	err := locks.Lead(ctx, "scheduler", nil, func(ctx context.Context, lease *redlatch.Lease) error {
		fmt.Println("this process leads")
		stop()       // the program gets a signal to end
		<-ctx.Done() // or another process leads
		return nil
	})
	fmt.Println("resigned:", err)
	// Output:
	// this process leads
	// resigned: <nil>
}

// Once runs a job once for each time at which it is due.
func ExampleClient_Once() {
	locks := clientOf(memory.Nodes(3))
	defer locks.Close()

	ctx := context.Background()
	for range 2 { // two machines start the job of the same day
		ran, err := locks.Once(ctx, "report", "2026-11-16", nil, func(ctx context.Context, lease *redlatch.Lease) error {
			return nil
		})
		fmt.Println("it ran:", ran, err)
	}
	completed, _, err := locks.Completed(ctx, "report", "2026-11-16")
	fmt.Println("completed:", completed, err)
	// Output:
	// it ran: true <nil>
	// it ran: false <nil>
	// completed: true <nil>
}

// LockAll acquires several locks, always in the same order, so that two callers
// do not wait for each other.
func ExampleClient_LockAll() {
	locks := clientOf(memory.Nodes(3))
	defer locks.Close()

	ctx := context.Background()
	both, err := locks.LockAll(ctx, []string{"accounts/7", "accounts/3"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer both.Release(ctx)
	fmt.Println("valid:", both.Remaining() > 0, both.Err())
	fmt.Println("one of them:", both.Lease("accounts/7").Name())
	// Output:
	// valid: true <nil>
	// one of them: accounts/7
}

// Watch follows who holds a lock.
func ExampleClient_Watch() {
	locks, err := redlatch.New(memory.Nodes(3), &redlatch.Options{Label: "nightly"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	ctx := context.Background()
	lease, err := locks.Lock(ctx, "report", nil)
	if err != nil {
		log.Fatal(err)
	}
	for holder, err := range locks.Watch(ctx, "report") {
		if err != nil {
			log.Fatal(err)
		}
		if holder == nil {
			fmt.Println("nobody holds it")
			break
		}
		fmt.Println("held by this process:", holder.Owner == lease.Owner())
		lease.Release(ctx)
	}
	// Output:
	// held by this process: true
	// nobody holds it
}

// Release releases a lock by its handle, in another process than the one that
// acquired it.
func ExampleClient_Release() {
	locks := clientOf(memory.Nodes(3))
	defer locks.Close()

	ctx := context.Background()
	lease, err := locks.Lock(ctx, "deploy", nil)
	if err != nil {
		log.Fatal(err)
	}
	handle := lease.Handle()
	fmt.Println("released:", locks.Release(ctx, handle))
	// Output:
	// released: <nil>
}

// With NoKeepAlive the caller extends the lease.
func ExampleLease_Extend() {
	locks := clientOf(memory.Nodes(3))
	defer locks.Close()

	ctx := context.Background()
	lease, err := locks.Lock(ctx, "import", &redlatch.LockOptions{TTL: 5 * time.Second, NoKeepAlive: true})
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)
	before := lease.Deadline()
	if err := lease.Extend(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("later than before:", lease.Deadline().After(before))
	fmt.Println("valid for up to", lease.TTL(), lease.Remaining() > 0, lease.Err())
	// Output:
	// later than before: true
	// valid for up to 5s true <nil>
}

// Downgrade makes a writer a reader, and lets other readers in.
func ExampleLease_Downgrade() {
	locks := clientOf(memory.Nodes(3))
	defer locks.Close()

	ctx := context.Background()
	writer, err := locks.Lock(ctx, "catalogue", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer writer.Release(ctx)
	if err := writer.Downgrade(ctx); err != nil {
		log.Fatal(err)
	}
	reader, err := locks.TryLock(ctx, "catalogue", &redlatch.LockOptions{Shared: true})
	if err != nil {
		log.Fatal(err)
	}
	defer reader.Release(ctx)
	fmt.Println("both read")
	// Output:
	// both read
}

// At most so many callers hold a lock with slots.
func ExampleLease_Slot() {
	locks := clientOf(memory.Nodes(3))
	defer locks.Close()

	ctx := context.Background()
	for range 3 {
		lease, err := locks.TryLock(ctx, "printers", &redlatch.LockOptions{Slots: 2})
		if err != nil {
			fmt.Println("all in use:", errors.Is(err, redlatch.ErrHeld))
			continue
		}
		defer lease.Release(ctx)
		fmt.Println("printer", lease.Slot())
	}
	// Output:
	// printer 0
	// printer 1
	// all in use: true
}

// A holder that others wait for can finish early.
func ExampleLease_Contended() {
	nodes := memory.Nodes(3)
	ours := clientOf(nodes)
	defer ours.Close()
	theirs := clientOf(nodes)
	defer theirs.Close()

	ctx := context.Background()
	lease, err := ours.Lock(ctx, "index", nil)
	if err != nil {
		log.Fatal(err)
	}
	got := make(chan error)
	go func() {
		_, err := theirs.Lock(ctx, "index", nil)
		got <- err
	}()
	<-lease.Contended()
	lease.Release(ctx)
	fmt.Println("the other one has it:", <-got == nil)
	// Output:
	// the other one has it: true
}
