package redlatchtusd_test

import (
	"log"

	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/redlatch/redlatch"
	redlatchtusd "github.com/redlatch/redlatch/adapters/tusd"
)

// Uploads in a shared folder, which several servers serve.
func ExampleNew() {
	composer := handler.NewStoreComposer()
	filestore.New("/shared/uploads").UseIn(composer)
	// snippet: locker
	locks, err := redlatch.Open("redis://a:6379,redis://b:6379,redis://c:6379", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	locker, err := redlatchtusd.New(locks, nil)
	if err != nil {
		log.Fatal(err)
	}
	locker.UseIn(composer)
	// end snippet
}
