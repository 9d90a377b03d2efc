package sim

import (
	"container/heap"
	"sync"
	"time"
)

// events runs functions when their time comes, one after the other, on one
// goroutine: there are hundreds of thousands of them a second.
type events struct {
	mu    sync.Mutex
	queue eventHeap
	sent  uint64
	awake chan struct{} // the first in the queue has changed
	quit  chan struct{}
}

type timed struct {
	at time.Time
	n  uint64 // of two at the same moment, the one that was asked for first
	do func()
}

func newEvents() *events {
	e := &events{awake: make(chan struct{}, 1), quit: make(chan struct{})}
	go e.loop()
	return e
}

// after runs f after a while.
func (e *events) after(d time.Duration, f func()) {
	e.mu.Lock()
	e.sent++
	heap.Push(&e.queue, timed{time.Now().Add(d), e.sent, f})
	first := e.queue[0].n == e.sent
	e.mu.Unlock()
	if first {
		select {
		case e.awake <- struct{}{}:
		default:
		}
	}
}

func (e *events) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		e.mu.Lock()
		wait, due := time.Hour, timed{}
		if len(e.queue) > 0 {
			if wait = time.Until(e.queue[0].at); wait <= 0 {
				due = heap.Pop(&e.queue).(timed)
			}
		}
		e.mu.Unlock()
		if due.do != nil {
			due.do()
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-e.awake:
		case <-e.quit:
			return
		}
	}
}

type eventHeap []timed

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].n < h[j].n
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(timed)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = timed{}
	*h = (*h)[:last]
	return x
}
