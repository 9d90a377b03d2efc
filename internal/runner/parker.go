package runner

import "time"

// parker is what a caller waits on: a signal and a timer. A client uses its
// parkers again.
type parker struct {
	signal chan struct{} // has room for one
	timer  *time.Timer
}

func (c *Cluster) newParker() *parker {
	if p, ok := c.parkers.Get().(*parker); ok {
		return p
	}
	p := &parker{make(chan struct{}, 1), time.NewTimer(time.Hour)}
	p.timer.Stop()
	return p
}

// reuse keeps a parker that nobody will signal any more.
func (c *Cluster) reuse(p *parker) {
	p.timer.Stop()
	select {
	case <-p.signal:
	default:
	}
	c.parkers.Put(p)
}
