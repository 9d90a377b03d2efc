// Leader is a web service of which any number of copies run. One leads, and
// serves. The others follow: they watch who leads, and redirect to it.
//
// When the leader gets a TERM, the next waiter leads at once; when it dies, after
// the TTL of its lock. A shorter TTL is faster, and more sensitive to a slow network.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	_ "github.com/redlatch/redlatch/store/sqlite" // for the file
)

var (
	listen = flag.String("listen", "127.0.0.1:0", "the address that the others redirect to")
	ttl    = flag.Duration("ttl", 5*time.Second, "a dead leader is replaced after this time")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// service is one copy.
type service struct {
	term   atomic.Pointer[redlatch.Lease] // while this copy leads
	leader atomic.Pointer[string]         // the leader's address, as last seen
}

func run(ctx context.Context) error {
	socket, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	// The label is part of the owner, which every copy can see. So it is the
	// place for the address.
	address := socket.Addr().String()
	locks, err := redlatch.Open(cmp.Or(os.Getenv("REDLATCH_NODES"), "sqlite:"), &redlatch.Options{Label: address})
	if err != nil {
		return err
	}
	defer locks.Close()

	s := &service{}
	server := &http.Server{Handler: s}
	defer server.Close()
	go server.Serve(socket)
	fmt.Println("listening on", address)
	go s.follow(ctx, locks)
	err = locks.Lead(ctx, "web", &redlatch.LockOptions{TTL: *ttl}, s.lead)
	if ctx.Err() != nil {
		// A signal. Lead has released the lock, which notified the next waiter.
		return nil
	}
	return err
}

// lead serves until the term ends: because of a signal, because the lock is lost,
// or because it was held for MaxHold, a day.
func (s *service) lead(ctx context.Context, lease *redlatch.Lease) error {
	fmt.Println("leading, token", lease.Token())
	s.term.Store(lease)
	defer s.term.Store(nil)
	<-ctx.Done()
	if cause := context.Cause(ctx); errors.Is(cause, redlatch.ErrLost) {
		fmt.Println("no longer the leader:", cause) // Lead campaigns again
	}
	return nil
}

// follow notes who leads. What it notes is the past: the leader may have changed
// since, so nothing but a redirection may depend on it.
func (s *service) follow(ctx context.Context, locks *redlatch.Client) {
	for holder, err := range locks.Watch(ctx, "web") {
		if err != nil {
			log.Print(err) // the last holder is still the best guess
			continue
		}
		address := ""
		if holder != nil {
			if parts := strings.SplitN(holder.Owner, "/", 3); len(parts) == 3 {
				address = parts[2] // host/pid/label
			}
		}
		s.leader.Store(&address)
		fmt.Println("the leader is", cmp.Or(address, "nobody"))
	}
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if lease := s.term.Load(); lease != nil && lease.Err() == nil {
		// A leader that is paused right here does not notice that it is
		// replaced: the token is for what it writes to.
		fmt.Fprintln(w, os.Getpid(), "leads with token", lease.Token())
		return
	}
	address := s.leader.Load()
	if address == nil || *address == "" || *address == r.Host {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "nobody leads", http.StatusServiceUnavailable)
		return
	}
	http.Redirect(w, r, "http://"+*address+r.URL.RequestURI(), http.StatusTemporaryRedirect)
}
