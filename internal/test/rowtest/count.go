//go:build unix

package rowtest

import (
	"database/sql"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
)

// Count checks that a request that nobody contends for is one statement. statements is
// a query for how many the server has executed, which nobody else uses. A node whose
// write came late reads first for a while, so on a busy machine another node is asked.
func Count(t *testing.T, driver, dsn, statements string, open func() node.Node) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	check.Must(t, err)
	defer db.Close()
	executed := func() (n int) {
		check.Must(t, db.QueryRow(statements).Scan(&n))
		return n
	}
	// Few rounds: a write that comes late has the node read first for a while, and a
	// busy machine has a quiet moment now and then.
	const rounds, tries, most = 4, 100, 5 * 4
	for range tries {
		n := open()
		want(t, n, request(node.OpAcquire, "before"), node.Granted)
		want(t, n, request(node.OpRelease, "before"), node.Granted)
		before := executed()
		for range rounds {
			for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpRelease} {
				want(t, n, request(op, "one"), node.Granted)
			}
		}
		got := executed() - before
		n.Close()
		t.Logf("%d requests took %d statements", 3*rounds, got)
		if got <= most { // a release looks at the queue; some sweep, and one counts
			return
		}
	}
	t.Errorf("with each of %d nodes it took more statements than %d", tries, most)
}
