//go:build unix

package redis_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/written"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/goredis"
)

// libraryLog is what go-redis logs in these tests, besides what they say.
var libraryLog written.Text

func init() { goredis.LogTo(slog.New(slog.NewTextHandler(&libraryLog, nil))) }

// TestServerThatIsDownIsNotPrintedPastTheLogger sends a request to a server
// that refuses connections: only the error reports that.
func TestServerThatIsDownIsNotPrintedPastTheLogger(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	server.Kill()
	n, err := goredis.Open(server.URL(), nil)
	must(t, err)
	c := newClient(t, []node.Node{n}, redlatch.Options{})
	for range 10 { // the library would stop dialling after a few
		_, err := c.TryLock(context.Background(), "job", nil)
		wantErr(t, err, redlatch.ErrNoQuorum, node.ErrUnsent)
		wantText(t, err, "connection refused")
	}
	for line := range strings.Lines(libraryLog.String()) {
		if strings.Contains(line, server.Addr()) {
			t.Error(line)
		}
	}
}
