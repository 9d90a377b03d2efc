//go:build unix

package fence_test

import (
	"log"
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/test/processes"
)

// TestMain is also the main function of the processes that TestPausedHolder
// starts.
func TestMain(m *testing.M) {
	processes.Main(m, func() {
		if err := runHolder(os.Args[1]); err != nil {
			log.Fatal(err)
		}
	})
}
