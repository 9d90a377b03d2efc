// Package admin is for those who operate the nodes of redlatch: it lists locks and
// breaks them, brings nodes into service, changes the membership, and looks for
// what endangers locks. The verbs of the redlatch command are made of it.
//
// A lock user needs nothing of this.
package admin

import (
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/internal/runner"
)

// Admin operates the nodes of one client. It is safe for use by many goroutines,
// and is of use until the client is closed.
type Admin struct {
	in inside.Client
	c  *runner.Cluster
}

// New returns what operates the nodes of a client.
func New(client *redlatch.Client) *Admin {
	in := inside.Of(client)
	return &Admin{in, in.Cluster}
}
