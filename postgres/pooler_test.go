//go:build unix

package postgres

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/sqltest"
	"github.com/redlatch/redlatch/node"
)

// TestPreparedStatementsThatAPoolerLosesAreNoErrors has many requests at once
// share the few sessions of a pooler, of which each knows other statements.
func TestPreparedStatementsThatAPoolerLosesAreNoErrors(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"direct": sqltest.PostgreSQL, "pooler": sqltest.PgBouncer} {
		t.Run(name, func(t *testing.T) {
			n, err := New(dsn(t), Options{Table: "prepared"})
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					req := node.Request{Name: fmt.Sprint("job ", i), Value: "v", TTL: time.Minute, Retention: time.Minute, Window: time.Minute}
					for range 20 {
						for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpRelease} {
							req.Op = op
							if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Granted {
								t.Errorf("%v of %s: %v, %v", op, req.Name, r.Status, err)
								return
							}
						}
					}
				})
			}
			all.Wait()
			if n.store.unprepared.Load() && name == "direct" {
				t.Error("statements are not prepared, though no session is lost")
			}
			t.Logf("%s: statements are prepared: %v", name, !n.store.unprepared.Load())
		})
	}
}
