package runner

import (
	"sync"
	"time"
)

// background counts the work that continues after the call that began it, and
// the calls whose grants may have to be undone, so that Close can wait for
// them.
type background struct {
	mu      sync.Mutex
	running int
	closed  bool
	closing chan struct{} // closed when Close begins
	idle    chan struct{} // closed after that, when nothing runs any more
}

// start reports whether work may begin. After Close has begun, only work that
// follows from running work may.
func (b *background) start() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed && b.running == 0 {
		return false
	}
	b.running++
	return true
}

func (b *background) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	if b.closed && b.running == 0 {
		close(b.idle)
	}
}

// sleep waits. It returns false if Close has begun.
func (b *background) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-b.closing:
		return false
	}
}

// close makes waiting callers give up, and counts as work itself until wait is
// called. It returns false if close was called before.
func (b *background) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.closed = true
	b.running++
	close(b.closing)
	return true
}

// wait waits until nothing runs any more, or until patience fires. It reports
// which.
func (b *background) wait(patience <-chan time.Time) (idle bool) {
	b.end()
	select {
	case <-b.idle:
		return true
	case <-patience:
		return false
	}
}

// run runs f in the background. It returns false if f may not begin any more.
func (b *background) run(f func()) bool {
	if !b.start() {
		return false
	}
	go func() {
		defer b.end()
		f()
	}()
	return true
}

// Go runs f in the background. Close waits for it.
func (c *Cluster) Go(f func()) {
	if !c.background.run(f) {
		go f()
	}
}
