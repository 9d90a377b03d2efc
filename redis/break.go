package redis

import "github.com/redlatch/redlatch/node"

// breakArgs are what the break script is given.
func breakArgs(req node.Request, token, retention, window string) []string {
	foreign := ""
	if req.Foreign {
		foreign = "1"
	}
	args := []string{token, retention, window, leap, foreign}
	if req.Guard != nil {
		args = append(args, req.Guard.List)
	}
	return args
}
