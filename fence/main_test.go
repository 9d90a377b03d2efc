//go:build unix

package fence_test

import (
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/test/sqltest"
)

// TestMain is also the main function of the processes that TestPausedHolder
// starts.
func TestMain(m *testing.M) {
	if config := os.Getenv(holderEnv); config != "" {
		os.Exit(runHolder(config))
	}
	os.Exit(sqltest.Main(m))
}
