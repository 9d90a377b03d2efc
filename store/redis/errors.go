package redis

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/redlatch/redlatch/node"
)

// ServerError is an error that the server replied with.
type ServerError struct {
	// Code is the first word of the reply: READONLY, NOAUTH, OOM. For an error
	// within a script it is that of the command.
	Code string
	// Text is the whole reply.
	Text string
}

// NewServerError returns the error for a reply's text.
func NewServerError(text string) *ServerError {
	code, _, _ := strings.Cut(text, " ")
	if m := inScript.FindStringSubmatch(text); m != nil {
		code = m[1]
	} else if code != strings.ToUpper(code) {
		code = "ERR"
	}
	return &ServerError{Code: code, Text: text}
}

// inScript finds the code in the error of a command that a script ran. Servers
// before Redis 7.0 put it behind the place in the script.
var inScript = regexp.MustCompile(`@user_script: ?\d+: -([A-Z]+) `)

func (e *ServerError) Error() string {
	if hint := e.Hint(); hint != "" {
		return e.Text + " (" + hint + ")"
	}
	return e.Text
}

// Is reports that a request which the server answered with an error had no
// effect, where that is certain: the script was not begun, or its first write
// was refused for a reason that holds for all its writes. Other errors can end
// a script half way, such as a right that is missing for a later command.
func (e *ServerError) Is(target error) bool {
	return target == node.ErrUnsent && (!strings.Contains(e.Text, "user_script") || refusesWrites[e.Code] && !e.Forbidden())
}

// refusesWrites are the codes with which a server refuses every write, or every
// write of a grant.
var refusesWrites = map[string]bool{"OOM": true, "MISCONF": true, "READONLY": true, "NOREPLICAS": true, "MASTERDOWN": true}

// Forbidden reports that the user lacks a right. For a command in a script some
// servers say so only in the text of the error.
func (e *ServerError) Forbidden() bool {
	return e.Code == "NOPERM" ||
		strings.Contains(e.Text, "user executing the script can't") || // up to Redis 7.0
		strings.Contains(e.Text, "ACL failure in script") // from Redis 7.2 on, and Valkey
}

// Hint says what can be done about the error; empty if nothing is known.
func (e *ServerError) Hint() string {
	if e.Forbidden() {
		return hints["NOPERM"]
	}
	return hints[e.Code]
}

var hints = map[string]string{
	"READONLY":     "the server is a replica: give the address of its master, or use redis+sentinel://",
	"LOADING":      "the server is loading its data: it will answer when it is done",
	"MISCONF":      "the server cannot save to disk and refuses writes: see its log, free disk space, or set stop-writes-on-bgsave-error no",
	"OOM":          "the server is out of memory: raise maxmemory, and keep locks on a server with maxmemory-policy noeviction",
	"CLUSTERDOWN":  "the cluster does not serve this slot: see CLUSTER INFO",
	"MASTERDOWN":   "the server is a replica that lost its master: give the address of the master",
	"NOREPLICAS":   "the server has fewer replicas than min-replicas-to-write asks for",
	"UNREPLICATED": "the master may be cut off and a replica of it be promoted elsewhere, so it grants and extends nothing until they are back; if they were removed for good, lower the number with redlatch init --replicas",
	"NOAUTH":       "the server wants a password: redis://user:password@host",
	"WRONGPASS":    "user name or password is wrong, or the user is disabled",
	"NOPERM":       "the user's ACL does not allow what a lock needs: see the documentation of this package",
	"NOINFO":       "the restart guard asks INFO inside a script: allow it to the user (+info), or switch the guard off and accept that a server which forgot its locks grants them again",
	"MOVED":        "the server is part of a cluster: use redis+cluster://",
	"ASK":          "the server is part of a cluster: use redis+cluster://",
	"CROSSSLOT":    "the server is part of a cluster: use redis+cluster://",
	"BUSY":         "a script runs on the server without end: SCRIPT KILL stops it",
	"TRYAGAIN":     "the slot is being moved: it is served again soon",
	"NOSCRIPT":     "the server has forgotten a script that was just sent to it",
	"WRONGTYPE":    "the key is held by a foreign format",
}

// explain turns a driver's error into one that says what it means for the
// request.
func explain(err error) error {
	if _, ok := errors.AsType[*ServerError](err); ok {
		return err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && !errors.Is(err, node.ErrUnsent) {
		return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	return err
}
