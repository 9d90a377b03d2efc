package system

import (
	"slices"
	"strings"
)

// everyones are the commands that any client of Redis sends itself: the
// running of scripts, the subscribing, and what concerns the connection. None
// of them can be run by a script.
var everyones = map[string]bool{
	"eval": true, "evalsha": true, "eval_ro": true, "evalsha_ro": true, "fcall": true, "fcall_ro": true,
	"subscribe": true, "unsubscribe": true, "psubscribe": true, "punsubscribe": true,
	"ssubscribe": true, "sunsubscribe": true,
	"hello": true, "auth": true, "select": true, "ping": true, "quit": true, "reset": true,
	"multi": true, "exec": true, "watch": true, "unwatch": true,
}

// Sent returns how many of the counted commands clients sent over their
// connections. A server counts those that scripts run under the same names,
// and in its total, so they are told apart by name: a script is one command,
// whatever it runs inside. That the names are right is checked against MONITOR
// in a test.
func (s *System) Sent(commands map[string]int64) int64 {
	var sent int64
	for name, n := range commands {
		if s.Store != Redis || s.sends(name) {
			sent += n
		}
	}
	return sent
}

func (s *System) sends(name string) bool {
	if everyones[name] || slices.Contains(s.Direct, name) {
		return true
	}
	// Subcommands are counted as client|setname, script|load.
	container, _, ok := strings.Cut(name, "|")
	return ok && (container == "client" || container == "script" || container == "function")
}
