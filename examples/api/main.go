// Api calls somebody else's API, which takes one call at a time and cannot check
// tokens: it charges each order. A call without an answer is repeated under the
// same idempotency key, so the order is charged once.
//
// If the program dies between a call and its answer, nobody knows whether the
// order was charged: the next holder has another token, and so another key. If
// the API remembers keys for long, store the key with the order before the call.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	_ "github.com/redlatch/redlatch/store/sqlite" // for the file
)

var (
	address = flag.String("url", "http://127.0.0.1:8080/charges", "where an order is charged")
	tries   = flag.Int("tries", 5, "how many times to try a call")
)

const (
	ttl     = 10 * time.Second
	timeout = 3 * time.Second // for one call; well below what a lock that is kept has left
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, orders []string) error {
	// The servers of REDLATCH_NODES, or else a file of this machine.
	locks, err := redlatch.Open(cmp.Or(os.Getenv("REDLATCH_NODES"), "sqlite:"), nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	for _, order := range orders {
		err := locks.Do(ctx, "partner-api", &redlatch.LockOptions{TTL: ttl, Wait: time.Minute}, func(ctx context.Context, lease *redlatch.Lease) error {
			return charge(ctx, order, lease)
		})
		if err != nil {
			return fmt.Errorf("order %s: %w", order, err)
		}
		fmt.Println("charged", order)
	}
	return nil
}

// errFinal is an answer that asking again would not change.
var errFinal = errors.New("refused")

// charge makes the call until it is answered. The key is the same for every
// try under this lease, and like no other's: a token is given once.
func charge(ctx context.Context, order string, lease *redlatch.Lease) error {
	key := order + "/" + lease.Token().String()
	var err error
	for try := range *tries {
		if try > 0 {
			select {
			case <-time.After(100 * time.Millisecond << try):
			case <-ctx.Done():
				return errors.Join(err, context.Cause(ctx))
			}
		}
		// A call that is begun late could be in flight when the next holder
		// makes its own.
		if left := lease.Remaining(); left < timeout {
			return errors.Join(err, fmt.Errorf("of the lock %v are left, too little for a call", left))
		}
		if err = call(ctx, order, key); err == nil || errors.Is(err, errFinal) || ctx.Err() != nil {
			return err
		}
		log.Printf("order %s, try %d: %v", order, try+1, err)
	}
	return err
}

func call(ctx context.Context, order, key string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	form := url.Values{"order": {order}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, *address, strings.NewReader(form))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s", errFinal, resp.Status)
	}
	return errors.New(resp.Status)
}
