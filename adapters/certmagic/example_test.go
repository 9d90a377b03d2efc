package redlatchcertmagic_test

import (
	"log"

	"github.com/caddyserver/certmagic"

	"github.com/redlatch/redlatch"
	redlatchcertmagic "github.com/redlatch/redlatch/adapters/certmagic"
)

// Certificates in a shared folder, of which one server at a time renews one.
func ExampleWrap() {
	files := &certmagic.FileStorage{Path: "/shared/certificates"}
	// snippet: wrap
	locks, err := redlatch.Open("redis://a:6379,redis://b:6379,redis://c:6379", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	storage, err := redlatchcertmagic.Wrap(files, locks, nil)
	if err != nil {
		log.Fatal(err)
	}
	certmagic.Default.Storage = storage
	// end snippet
}
