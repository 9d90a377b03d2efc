//go:build unix

package fence_test

import (
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestMain is also the main function of the processes that TestPausedHolder
// starts.
func TestMain(m *testing.M) {
	if config := os.Getenv(holderEnv); config != "" {
		os.Exit(runHolder(config))
	}
	os.Exit(servertest.Main(m))
}
