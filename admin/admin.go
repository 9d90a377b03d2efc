// Package admin is for operators of redlatch's nodes. It lists and breaks
// locks, brings nodes into service, changes the membership, and looks for risks
// to locks. The verbs of the redlatch command use it.
//
// A lock user does not need it.
package admin

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// Admin operates the nodes of one client. It is safe for use by many
// goroutines. It can be used until the client is closed.
type Admin struct {
	in clientaccess.Client
	c  *runner.Cluster
}

// New returns an Admin for the nodes of a client.
func New(client *redlatch.Client) *Admin {
	in := clientaccess.Of(client)
	return &Admin{in, in.Cluster}
}

// ask asks every node, each for limit at most; 0 is no limit. The answer of a
// node that failed is zero.
func ask[T any](ctx context.Context, c *runner.Cluster, limit time.Duration, do func(context.Context, *runner.Member) (T, error)) ([]T, []error) {
	came, answers := make([]T, len(c.Members())), make([]T, len(c.Members()))
	errs := c.ForEachNode(ctx, limit, func(ctx context.Context, m *runner.Member) (err error) {
		came[m.Index()], err = do(ctx, m)
		return err
	})
	for i, err := range errs {
		if err == nil { // otherwise its goroutine may still be writing
			answers[i] = came[i]
		}
	}
	return answers, errs
}

// results returns the answers of the nodes as errors and events have them.
func (a *Admin) results(replies []node.Reply, errs []error) []observe.Result {
	all := make([]observe.Result, len(errs))
	for i, m := range a.c.Members() {
		all[i] = observe.Result{Node: m.Name(), Reply: replies[i], Err: errs[i]}
	}
	return all
}
