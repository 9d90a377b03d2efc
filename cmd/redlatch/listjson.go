package main

import (
	"time"

	"github.com/redlatch/redlatch"
)

// lockJSON is a lock as a line of JSON. Tokens are strings.
type lockJSON struct {
	Name    string       `json:"name"`
	State   string       `json:"state"`
	Holders []holderJSON `json:"holders"`
	Token   string       `json:"token,omitempty"`
	Waiting int          `json:"waiting"`
	Waiters []waiterJSON `json:"waiters,omitempty"`
	Nodes   []nodeJSON   `json:"nodes"`
}

type holderJSON struct {
	Owner string   `json:"owner"`
	Kind  string   `json:"kind"`
	Left  *float64 `json:"left_ms"` // null if it never runs out
	Nodes int      `json:"nodes"`
}

type waiterJSON struct {
	Owner string `json:"owner"`
	Since string `json:"since"`
	Nodes int    `json:"nodes"`
}

type nodeJSON struct {
	Node    string   `json:"node"`
	Owner   string   `json:"owner,omitempty"`
	Left    *float64 `json:"left_ms,omitempty"`
	Token   string   `json:"token,omitempty"`
	Waiting int      `json:"waiting"`
	Error   string   `json:"error,omitempty"`
}

func stateJSON(s *redlatch.LockState, waiters bool) lockJSON {
	j := lockJSON{Name: s.Name, State: stateOf(s), Holders: []holderJSON{}, Token: tokenText(s.Token), Waiting: s.Waiting}
	for _, h := range s.Holders {
		who := holderJSON{Owner: h.Owner, Kind: string(h.Kind), Nodes: h.Nodes}
		if h.Left != redlatch.NoExpiry {
			who.Left = ms(h.Left)
		}
		j.Holders = append(j.Holders, who)
	}
	if waiters {
		for _, w := range s.Waiters {
			j.Waiters = append(j.Waiters, waiterJSON{w.Owner, w.Since.UTC().Format(time.RFC3339Nano), w.Nodes})
		}
	}
	for _, n := range s.Nodes {
		node := nodeJSON{Node: n.Node, Owner: n.Owner, Token: tokenText(n.Reply.Fence), Waiting: n.Waiting}
		if n.Owner != "" && n.Reply.Left != redlatch.NoExpiry {
			node.Left = ms(n.Reply.Left)
		}
		if n.Err != nil {
			node.Error = message(n.Err)
		}
		j.Nodes = append(j.Nodes, node)
	}
	return j
}
