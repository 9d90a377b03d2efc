package main

import (
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
)

// lockJSON is a lock as a line of JSON. Tokens are strings. Token is that of
// the first holder. Fence is present if it differs: other clients raised it, or
// nobody holds the lock.
type lockJSON struct {
	Name      string          `json:"name"`
	State     string          `json:"state"`
	Holders   []holderJSON    `json:"holders"`
	Token     string          `json:"token,omitempty"`
	Fence     string          `json:"fence,omitempty"`
	Waiting   int             `json:"waiting"`
	Waiters   []waiterJSON    `json:"waiters,omitempty"`
	Completed []completedJSON `json:"completed,omitempty"`
	Since     string          `json:"completed_since,omitempty"` // since when a majority remembers
	Nodes     []nodeJSON      `json:"nodes"`
}

type holderJSON struct {
	Owner string `json:"owner"`
	Kind  string `json:"kind"`
	Token string `json:"token,omitempty"`
	shareJSON
	Holders int      `json:"holders,omitempty"` // how many hold it together, if there are several
	Since   string   `json:"since,omitempty"`
	Held    *float64 `json:"held_ms,omitempty"`
	Expires *float64 `json:"expires_in_ms"` // null if it never expires
	Nodes   int      `json:"nodes"`
}

func holdersJSON(holders []redlatch.Holder) []holderJSON {
	all := make([]holderJSON, 0, len(holders))
	for _, h := range holders {
		who := holderJSON{Owner: h.Owner, Kind: string(h.Kind), Token: tokenText(h.Token), Nodes: h.Nodes, shareJSON: newShareJSON(h.Shared, h.Slots, h.Slot)}
		if h.Holders > 1 {
			who.Holders = h.Holders
		}
		if !h.Since.IsZero() {
			who.Since, who.Held = h.Since.UTC().Format(time.RFC3339Nano), ms(h.Held)
		}
		if h.Left != node.NoExpiry {
			who.Expires = ms(h.Left)
		}
		all = append(all, who)
	}
	return all
}

type waiterJSON struct {
	Owner  string `json:"owner"`
	Shared bool   `json:"shared,omitempty"`
	Slots  int    `json:"slots,omitempty"`
	Since  string `json:"since"`
	Nodes  int    `json:"nodes"`
}

// completedJSON is an occurrence that is completed.
type completedJSON struct {
	Occurrence string `json:"occurrence"`
	Until      string `json:"until"`
	Nodes      int    `json:"nodes"`
}

type nodeJSON struct {
	Node    string   `json:"node"`
	Owner   string   `json:"owner,omitempty"`
	Holders int      `json:"holders,omitempty"` // if there are several
	Expires *float64 `json:"expires_in_ms,omitempty"`
	Token   string   `json:"token,omitempty"`
	Fence   string   `json:"fence,omitempty"`
	Waiting int      `json:"waiting"`
	Error   string   `json:"error,omitempty"`
}

func stateJSON(s *admin.LockState, waiters bool) lockJSON {
	j := lockJSON{Name: s.Name, State: stateOf(s), Holders: holdersJSON(s.Holders), Waiting: s.Waiting}
	if len(s.Holders) > 0 {
		j.Token = tokenText(s.Holders[0].Token)
	}
	if fence := tokenText(s.Fence); fence != j.Token {
		j.Fence = fence
	}
	if waiters {
		for _, w := range s.Waiters {
			j.Waiters = append(j.Waiters, waiterJSON{w.Owner, w.Shared, w.Slots, w.Since.UTC().Format(time.RFC3339Nano), w.Nodes})
		}
	}
	for _, m := range s.Completed {
		j.Completed = append(j.Completed, completedJSON{m.Occurrence, m.Until.UTC().Format(time.RFC3339Nano), m.Nodes})
	}
	if !s.CompletedSince.IsZero() {
		j.Since = s.CompletedSince.UTC().Format(time.RFC3339Nano)
	}
	for _, n := range s.Nodes {
		entry := nodeJSON{Node: n.Node, Owner: n.Owner, Token: tokenText(n.Token), Waiting: n.Waiting}
		if len(n.Holders) > 1 {
			entry.Holders = len(n.Holders)
		}
		if n.Reply.Fence != n.Token {
			entry.Fence = tokenText(n.Reply.Fence)
		}
		if n.Owner != "" && n.Reply.Left != node.NoExpiry {
			entry.Expires = ms(n.Reply.Left)
		}
		if n.Err != nil {
			entry.Error = message(n.Err)
		}
		j.Nodes = append(j.Nodes, entry)
	}
	return j
}
