// Example is a tusd server. Several of them can serve the same uploads from one
// shared folder, behind a load balancer that need not know which client belongs
// to which server.
package main

import (
	"flag"
	"log"
	"net/http"

	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/redlatch/redlatch"
	redlatchtusd "github.com/redlatch/redlatch/adapters/tusd"
)

var (
	nodes  = flag.String("nodes", "redis://127.0.0.1:6379", "addresses of the nodes, with commas in between")
	dir    = flag.String("dir", "uploads", "a folder that all servers share")
	listen = flag.String("listen", "127.0.0.1:8080", "where to serve")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	// snippet: locker
	locks, err := redlatch.Open(*nodes, nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	locker, err := redlatchtusd.New(locks, nil)
	if err != nil {
		return err
	}

	composer := handler.NewStoreComposer()
	filestore.New(*dir).UseIn(composer)
	locker.UseIn(composer)
	uploads, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer})
	if err != nil {
		return err
	}
	// end snippet

	log.Printf("serving http://%s/files/", *listen)
	return http.ListenAndServe(*listen, http.StripPrefix("/files/", uploads))
}
