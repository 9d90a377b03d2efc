package ui_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/memory"
	"github.com/redlatch/redlatch/ui"
)

// The page in a server of one's own, under a path. What protects the server's
// other internal pages goes around it.
func Example() {
	client, err := redlatch.New(memory.Nodes(3), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	page, err := ui.New(client, &ui.Options{Title: "Locks of the shop"})
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close() // before the client

	requireLogin := func(h http.Handler) http.Handler { return h } // yours
	mux := http.NewServeMux()
	mux.Handle("/locks/", requireLogin(http.StripPrefix("/locks", page)))

	server := httptest.NewServer(mux)
	defer server.Close()
	resp, err := http.Get(server.URL + "/locks/")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Status, strings.Contains(string(body), "Locks of the shop"))
	// Output: 200 OK true
}
