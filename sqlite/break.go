package sqlite

import "github.com/redlatch/redlatch"

func (t *tx) breakUp() redlatch.Status {
	switch {
	case t.req.Token != 0 && (t.req.Token < t.least || t.req.Token == t.least && t.held):
		return redlatch.Stale
	case t.judge() == redlatch.Ahead:
		return redlatch.Ahead
	}
	t.free()
	t.raise()
	t.store()
	return redlatch.Granted
}
