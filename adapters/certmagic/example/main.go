// Example serves HTTPS with certificates that certmagic obtains. Of all copies of
// this program, on all machines, one at a time obtains the certificate of a
// domain.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"strings"

	"github.com/caddyserver/certmagic"

	"github.com/redlatch/redlatch"
	redlatchcertmagic "github.com/redlatch/redlatch/adapters/certmagic"
)

var (
	nodes   = flag.String("nodes", "redis://127.0.0.1:6379", "addresses of the nodes, with commas in between")
	dir     = flag.String("dir", "certificates", "a folder that all machines share")
	domains = flag.String("domains", "example.com", "the domains, with commas in between")
	email   = flag.String("email", "", "whom the certificate authority writes to")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	// snippet: wrap
	locks, err := redlatch.Open(*nodes, nil)
	if err != nil {
		return err
	}
	defer locks.Close()

	files := &certmagic.FileStorage{Path: *dir}
	storage, err := redlatchcertmagic.Wrap(files, locks, nil)
	if err != nil {
		return err
	}
	certmagic.Default.Storage = storage
	// end snippet

	certmagic.DefaultACME.Agreed = true
	certmagic.DefaultACME.Email = *email
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello from", r.Host) })
	return certmagic.HTTPS(strings.Split(*domains, ","), hello)
}
