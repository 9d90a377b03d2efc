//go:build unix

package fence_test

import (
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }
