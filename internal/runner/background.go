package runner

import (
	"context"
	"sync/atomic"
	"time"
)

// background counts the work that continues after the call that began it, and
// the calls whose grants may have to be undone, so that Close can wait for
// them.
type background struct {
	running atomic.Int64 // and one more until wait is called
	closed  atomic.Bool
	open    context.Context // ends when Close begins
	shut    context.CancelFunc
	idle    chan struct{} // closed after that, when nothing runs any more
}

func newBackground() *background {
	b := &background{idle: make(chan struct{})}
	b.open, b.shut = context.WithCancel(context.Background())
	b.running.Store(1)
	return b
}

// start reports whether work may begin. After Close has begun, only work that
// follows from running work may.
func (b *background) start() bool {
	for n := b.running.Load(); n > 0; n = b.running.Load() {
		if b.running.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (b *background) end() {
	if b.running.Add(-1) == 0 {
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
	case <-b.open.Done():
		return false
	}
}

// close makes waiting callers give up, and counts as work itself until wait is
// called. It returns false if close was called before.
func (b *background) close() bool {
	if b.closed.Swap(true) {
		return false
	}
	b.shut()
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
