package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/sqlite"
)

// All processes of this machine that open the file contend for its locks. For
// the path that the redlatch command uses, see DefaultPath.
func Example() {
	dir, err := os.MkdirTemp("", "redlatch")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	node, err := sqlite.Open(filepath.Join(dir, "locks.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(context.Background(), "backup", nil,
		func(ctx context.Context, lease *redlatch.Lease) error {
			fmt.Println("the only one at it on this machine")
			return nil
		})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// the only one at it on this machine
}

// The file that the redlatch command uses if no other is named.
func ExampleDefaultPath() {
	path, err := sqlite.DefaultPath()
	if err != nil {
		log.Fatal(err)
	}
	node, err := sqlite.Open(path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
}
