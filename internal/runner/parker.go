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
	p := &parker{signal: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	p.timer.Stop()
	return p
}

// reuse keeps a parker that nobody will signal any more.
func (c *Cluster) reuse(p *parker) {
	p.timer.Stop()
	p.drain()
	c.parkers.Put(p)
}

// drain removes the signal, if there is one.
func (p *parker) drain() {
	select {
	case <-p.signal:
	default:
	}
}
