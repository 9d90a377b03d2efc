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

// Lock waits as long as its context and options allow, and returns the lease
// itself.
func ExampleClient_Lock() {
	locks, err := redlatch.New(memory.Nodes(1), nil)
	if err != nil {
		log.Fatal(err)
	}
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
	second, err := redlatch.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
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
	ours, err := redlatch.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ours.Close()
	theirs, err := redlatch.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
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
	locks, err := redlatch.New(memory.Nodes(3), nil)
	if err != nil {
		log.Fatal(err)
	}
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
