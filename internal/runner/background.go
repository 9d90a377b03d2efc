package runner

import (
	"sync"
	"time"
)

// background counts the work that outlives the call that began it, or that may
// leave something behind, so that Close can wait for it.
type background struct {
	mu      sync.Mutex
	running int
	closed  bool
	closing chan struct{} // closed when Close begins
	idle    chan struct{} // closed when nothing runs any more after that
}

func newBackground() *background {
	return &background{closing: make(chan struct{}), idle: make(chan struct{})}
}

// start reports whether work may begin. After Close has begun, only work that
// follows from work in flight may.
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

// sleep waits, and reports false if Close has begun: then what could not be
// done is left to run out.
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

// close has waiting callers give up, and counts as work itself until wait is
// called. It reports false if that was done before.
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

// wait waits until nothing runs any more, or patience is over.
func (b *background) wait(patience <-chan time.Time) {
	b.end()
	select {
	case <-b.idle:
	case <-patience:
	}
}

// Go runs f in the background. Close waits for it.
func (c *Cluster) Go(f func()) {
	counted := c.background.start()
	go func() {
		f()
		if counted {
			c.background.end()
		}
	}()
}
