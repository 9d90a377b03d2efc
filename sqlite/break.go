package sqlite

import "github.com/redlatch/redlatch/node"

func (t *tx) breakUp() node.Status {
	switch {
	case t.req.Token != 0 && (t.req.Token < t.least || t.req.Token == t.least && t.held()):
		return node.Stale
	case t.judge() == node.Ahead:
		return node.Ahead
	}
	t.holders = nil
	t.raise(true)
	if t.req.Token != 0 {
		t.released = 0
	}
	t.store()
	return node.Granted
}
