package casnode

import (
	"fmt"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// MaxReaders is how many readers a name has at most. Each extension writes all of
// them, and others wait meanwhile: with a TTL of 10 s a busy machine kept 200 on
// PostgreSQL and MariaDB and 300 in a file, and lost most of 500 on MariaDB.
const MaxReaders = 200

// crowded returns an error if a name has as many readers as a row may have.
func crowded(e *nodestate.Entry, req node.Request) error {
	if req.Op != node.OpAcquire || req.Mode != node.Shared || len(e.Holders) < MaxReaders || e.Holders.Of(req.Value, req.Share) >= 0 {
		return nil
	}
	return fmt.Errorf("redlatch: %q has %d readers, the limit of a database or file (Redis has %d): use fewer readers, or nodes on Redis",
		req.Name, len(e.Holders), node.MaxHolders)
}
