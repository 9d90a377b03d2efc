//go:build unix

package postgres_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// Programs that start together all find the table missing. PostgreSQL refuses
// some of those that create it at once, though they say IF NOT EXISTS.
func TestManyCreateTheTableAtOnce(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	const rounds, programs = 10, 8
	for round := range rounds {
		var all []*postgres.Node
		for range programs {
			all = append(all, openAt(t, dsn, fmt.Sprint("at_once_", round)))
		}
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for _, n := range all {
			wg.Go(func() {
				<-begin
				if _, err := n.Do(t.Context(), node.Request{Op: node.OpInspect, Name: "a"}); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		wg.Wait()
		for _, n := range all {
			n.Close() // the server has a limit of connections
		}
	}
}
