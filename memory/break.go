package memory

import (
	"time"

	"github.com/redlatch/redlatch"
)

func (e *entry) breakUp(req redlatch.Request, now time.Time) redlatch.Status {
	switch {
	case req.Token != 0 && (req.Token < e.fence || req.Token == e.fence && e.held()):
		return redlatch.Stale
	case judge(req, e.fence, now) == redlatch.Ahead:
		return redlatch.Ahead
	}
	e.value, e.until = "", time.Time{}
	e.raise(req, now)
	return redlatch.Granted
}
