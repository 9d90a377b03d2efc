// Package signals receives the signals that end a process, and has this process
// end by one of them. The commands share it.
package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Notify delivers the signals to the channel, except those that we were started
// with as ignored: nohup must hold for us and for what we start.
func Notify(to chan<- os.Signal, signals []os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(to, s)
		}
	}
}

// Error says which signal ended something.
type Error struct{ Signal syscall.Signal }

func (e *Error) Error() string { return e.Signal.String() }

// Context returns a context that ends with the first of the signals. Its cause
// is then an *Error. The function ends it as well, and delivers the signals as
// before.
func Context(list []os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	received := make(chan os.Signal, 1)
	Notify(received, list)
	go func() {
		select {
		case s := <-received:
			cancel(&Error{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(received)
		cancel(nil)
	}
}
