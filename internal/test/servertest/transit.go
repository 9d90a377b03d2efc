package servertest

import (
	"sync"
	"time"
)

// parcel is a piece of a connection's traffic and when it is to arrive.
type parcel struct {
	data []byte
	at   time.Time
}

// mostParcels is how many may be in flight in one direction of a connection.
const mostParcels = 10_000

// transit is what is in flight in one direction of a connection, in order. It
// grows with use: there are many connections, and little in most of them.
type transit struct {
	more chan struct{} // has an element when there may be something to take

	mu      sync.Mutex
	parcels []parcel
	ended   bool
}

func newTransit() *transit { return &transit{more: make(chan struct{}, 1)} }

// send adds a parcel. It reports false if too many are in flight.
func (f *transit) send(x parcel) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.parcels) == mostParcels {
		return false
	}
	f.parcels = append(f.parcels, x)
	f.wake()
	return true
}

// end says that no more will be sent.
func (f *transit) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.wake()
}

func (f *transit) wake() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// next waits for a parcel and takes it. It reports false when all were taken
// and no more will be sent.
func (f *transit) next() (parcel, bool) {
	for {
		f.mu.Lock()
		if len(f.parcels) > 0 {
			x := f.parcels[0]
			f.parcels = f.parcels[1:]
			f.mu.Unlock()
			return x, true
		}
		ended := f.ended
		f.mu.Unlock()
		if ended {
			return parcel{}, false
		}
		<-f.more
	}
}
