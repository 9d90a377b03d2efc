package memory

import "github.com/redlatch/redlatch/node"

func (e *entry) breakUp(req node.Request, s *serving) node.Status {
	switch {
	case req.Token != 0 && (req.Token < e.fence || req.Token == e.fence && e.held()):
		return node.Stale
	case judge(req, e.fence, s.now) == node.Ahead:
		return node.Ahead
	}
	e.free()
	e.raise(req, s.now)
	s.fence = e.fence
	e.queue.serve(true, s)
	return node.Granted
}
