package redis

import "github.com/redlatch/redlatch/node"

// breakArgs are the arguments of the break script.
func breakArgs(req node.Request, token, retention, window string) []string {
	foreign := ""
	if req.Foreign {
		foreign = "1"
	}
	args := []string{token, retention, window, foreign}
	if req.Guard != nil {
		args = append(args, req.Guard.List)
	}
	return args
}
