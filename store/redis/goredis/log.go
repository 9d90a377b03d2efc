package goredis

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"
)

// LogTo makes the go-redis library log to logger instead of to standard error.
// The library has one logger for all clients of a program, so the program
// decides: redlatch never sets it. What the library logs is mostly about
// sentinels and clusters; redlatch itself reports unreachable servers in its
// errors and logs. With a nil logger the library logs nothing.
func LogTo(logger *slog.Logger) {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	goredis.SetLogger(library{logger})
}

// library is where the library logs to.
type library struct{ *slog.Logger }

func (l library) Printf(ctx context.Context, format string, args ...any) {
	l.InfoContext(ctx, "go-redis: "+fmt.Sprintf(format, args...))
}
