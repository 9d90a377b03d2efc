// Package admin is for operators of redlatch's nodes. It lists and breaks
// locks, brings nodes into service, changes the membership, and looks for risks
// to locks. The verbs of the redlatch command use it.
//
// A lock user does not need it.
package admin

import (
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/internal/runner"
)

// Admin operates the nodes of one client. It is safe for use by many
// goroutines. It can be used until the client is closed.
type Admin struct {
	in inside.Client
	c  *runner.Cluster
}

// New returns an Admin for the nodes of a client.
func New(client *redlatch.Client) *Admin {
	in := inside.Of(client)
	return &Admin{in, in.Cluster}
}
