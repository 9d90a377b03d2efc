package memory

import "github.com/redlatch/redlatch"

func (e *entry) breakUp(req redlatch.Request, s *serving) redlatch.Status {
	switch {
	case req.Token != 0 && (req.Token < e.fence || req.Token == e.fence && e.held()):
		return redlatch.Stale
	case judge(req, e.fence, s.now) == redlatch.Ahead:
		return redlatch.Ahead
	}
	e.free()
	e.raise(req, s.now)
	s.fence = e.fence
	e.queue.serve(true, s)
	return redlatch.Granted
}
