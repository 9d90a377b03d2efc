package goredis

import (
	"context"
	"fmt"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"
)

// LogTo has the go-redis library log to logger instead of to standard error.
// The library has one logger for all clients of a program, so this is left to
// the program: redlatch sets none by itself. What the library logs of its own
// accord is mostly about sentinels and clusters; that a server cannot be
// reached is in the errors and logs of redlatch. Without a logger it logs
// nothing.
func LogTo(logger *slog.Logger) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	goredis.SetLogger(library{logger})
}

// library is where the library logs to.
type library struct{ *slog.Logger }

func (l library) Printf(ctx context.Context, format string, args ...any) {
	l.InfoContext(ctx, "go-redis: "+fmt.Sprintf(format, args...))
}
