package fence_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
)

// The server refuses late requests; the client sends its token with each.
func ExampleMiddleware() {
	gate, err := fence.NewGate(nil)
	if err != nil {
		log.Fatal(err)
	}
	fenced, err := fence.Middleware(gate, nil)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		token, _ := fence.TokenFrom(r.Context()) // for the store behind it
		if fence.IsReader(r.Context()) {
			log.Fatal("a reader writes")
		}
		fmt.Println("order", r.PathValue("id"), "written with token", uint64(token))
	})
	server := httptest.NewServer(fenced(mux))
	defer server.Close()

	client := &http.Client{Transport: &fence.Transport{}}
	put := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, "PUT", server.URL+"/orders/42", strings.NewReader("paid"))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return fence.ResponseError(resp)
	}

	// Tokens come from Lease.Token.
	older, newer := redlatch.Token(1763000000123456), redlatch.Token(1763000009876543)
	ctx := context.Background()
	fmt.Println(put(fence.WithToken(ctx, newer)))
	fmt.Println(put(fence.WithToken(ctx, older)))
	fmt.Println(put(ctx))
	// Output:
	// order 42 written with token 1763000009876543
	// <nil>
	// redlatch: token 00001763000000123456 is stale: "/orders/42" has seen 00001763000009876543
	// redlatch: request has no token
}
