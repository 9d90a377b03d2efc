package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redlatch/redlatch/internal/steptimeout"
	"github.com/redlatch/redlatch/node"
)

var _ node.Evidencer = (*Node)(nil)

// Evidence scans the server's keys in small steps, and returns the first that
// shows that locks were kept there. In a cluster it scans one master after the
// other.
func (n *Node) Evidence(ctx context.Context) (string, error) {
	routes, err := n.routes(ctx)
	if err != nil {
		return "", err
	}
	for _, route := range routes {
		for cursor := "0"; ; {
			step, err := n.driver.Eval(ctx, Call{Script: evidenceScript, Keys: []string{route}, Args: []string{cursor, strconv.Itoa(scanStep)}})
			if err != nil {
				return "", explain(err)
			}
			steptimeout.Tell(ctx)
			if len(step) == 0 {
				return "", fmt.Errorf("redlatch: unexpected empty reply to the evidence script")
			}
			if len(step) > 1 {
				return step[1], nil
			}
			if cursor = step[0]; cursor == "0" {
				break
			}
		}
	}
	return "", nil
}
