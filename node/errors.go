package node

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrUnsent is wrapped by a node's error when it is certain that the
	// request had no effect and will have none.
	ErrUnsent = errors.New("redlatch: request had no effect")

	// ErrBusy is wrapped by a node's error, along with ErrUnsent, when all
	// connections of the program's own pool were in use. It says nothing about
	// the server.
	ErrBusy = errors.New("redlatch: the connections of this program's pool are in use")

	// ErrContended is wrapped by a node's error, along with ErrUnsent, when the server
	// answers, and too many ask it: others changed what the request was about at each
	// of its tries, or it takes no more connections. A caller goes on asking.
	ErrContended = errors.New("redlatch: too many ask at once")

	// ErrClosed is returned when the client was closed; by a node, along with
	// ErrUnsent, when the node was.
	ErrClosed = errors.New("redlatch: client is closed")

	// ErrConfig is returned when an option, a name or a membership is not
	// valid. The error is a *ConfigError that says which setting, and what it
	// allows.
	ErrConfig = errors.New("redlatch: bad configuration")

	// ErrChanging is returned, along with ErrConfig, when nodes grant nothing
	// because a membership change is in progress. It passes when the change is
	// finished; the error says how.
	ErrChanging = errors.New("redlatch: the membership is being changed")
)

// ConfigError says which setting is not valid.
type ConfigError struct {
	Field string // what was set: "TTL", "name", "nodes[2]"
	Value any    // what it was set to
	Bound string // what it allows

	// Problem is the message, if "FIELD is VALUE: must be BOUND" would not say
	// it well.
	Problem string

	// Changing says that it is due to a membership change in progress.
	Changing bool
}

func (e *ConfigError) Error() string {
	if e.Problem != "" {
		return "redlatch: " + e.Problem
	}
	v := fmt.Sprintf("%v", e.Value)
	if s, ok := e.Value.(string); ok {
		v = fmt.Sprintf("%q", s)
	}
	const most = 80
	if len(v) > most {
		v = strings.ToValidUTF8(v[:most], "") + "…" // do not cut a rune in half
	}
	return fmt.Sprintf("redlatch: %s is %s: must be %s", e.Field, v, e.Bound)
}

// Is reports that every ConfigError is an ErrConfig, and one that is due to a
// membership change in progress an ErrChanging besides.
func (e *ConfigError) Is(target error) bool {
	return target == ErrConfig || target == ErrChanging && e.Changing
}
