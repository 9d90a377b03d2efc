// Worker is a client of redlatch that executes orders, one a line, and answers
// each with one line. The tests of package former build it twice: with the code
// beside it, and with that of an earlier version. So it uses only what both
// have.
//
//	acquire NAME MS WAIT-MS [KIND]  ok TOKEN SLOT | held | error TEXT
//	valid                           ok | lost
//	release                         ok | lost | error TEXT
//	detach                          ok HANDLE | error TEXT
//	attach HANDLE                   ok TOKEN SLOT | lost | error TEXT
//
// KIND is r for a reader, sK for one of K slots. The worker holds one lock at a
// time, prints "ready" first, and ends with its input.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
)

func main() {
	var opts redlatch.Options
	addresses := flag.String("nodes", "", "addresses, separated by commas")
	flag.StringVar(&opts.Label, "label", "worker", "the name of the owner")
	flag.StringVar(&opts.Prefix, "prefix", "", "what is before every name")
	flag.DurationVar(&opts.MaxTTL, "max-ttl", 0, "the longest time to live")
	flag.BoolVar(&opts.AssumeFresh, "fresh", false, "the servers are new")
	flag.Parse()
	opts.NodeTimeout = time.Second // others share this machine
	client, err := redlatch.Open(*addresses, &opts)
	if err != nil {
		fail(err)
	}
	fmt.Println("ready")
	w := &worker{client: client}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(strings.ReplaceAll(w.answer(strings.Fields(lines.Text())), "\n", " "))
	}
	client.Close()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

type worker struct {
	client *redlatch.Client
	lease  *redlatch.Lease // nil if there is none
}

func (w *worker) answer(order []string) string {
	ctx := context.Background()
	switch {
	case len(order) >= 4 && order[0] == "acquire":
		opts := redlatch.LockOptions{TTL: millis(order[2]), Wait: millis(order[3])}
		if len(order) > 4 {
			share(&opts, order[4])
		}
		lease, err := w.client.Lock(ctx, order[1], &opts)
		return w.has(lease, err)
	case len(order) == 2 && order[0] == "attach":
		lease, err := w.client.Attach(ctx, order[1])
		return w.has(lease, err)
	case w.lease == nil:
		return "error no lock, or not an order: " + strings.Join(order, " ")
	case order[0] == "valid":
		return said(w.lease.Err())
	case order[0] == "release":
		lease := w.lease
		w.lease = nil
		return said(lease.Release(ctx))
	case order[0] == "detach":
		handle, err := w.lease.Detach()
		w.lease = nil
		if err != nil {
			return said(err)
		}
		return "ok " + handle
	}
	return "error not an order: " + strings.Join(order, " ")
}

// has is the answer to an order that gives a lease.
func (w *worker) has(lease *redlatch.Lease, err error) string {
	if err != nil {
		return said(err)
	}
	w.lease = lease
	return fmt.Sprintf("ok %d %d", uint64(lease.Token()), lease.Slot())
}

func said(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, redlatch.ErrLost):
		return "lost"
	case errors.Is(err, redlatch.ErrHeld):
		return "held"
	}
	return "error " + err.Error()
}

func millis(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		fail(err)
	}
	return time.Duration(n) * time.Millisecond
}

// share makes a lock shared, or one of so many slots.
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
