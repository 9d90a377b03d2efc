package direct

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/store/redis"
)

// request is a command in flight: the run of a script, or another command.
type request struct {
	call    redis.Call
	source  bool     // the script is sent as a whole
	command []string // another command than a script; nil for a script

	// One of these is called with the reply, unless the request was given up.
	done func(reply []string, err error)
	raw  func(reply resp.Reply, err error)

	limit    time.Duration // 0 for none
	deadline time.Duration // since began; 0 for none
	heard    uint64        // how many replies had arrived before it was sent
	batch    int           // how many requests were sent as one, from this one on; 0 if it was not the first of such
	givenUp  bool          // nobody waits for it any longer, and call may be used again
	silent   time.Duration // then: since began, when the connection is taken for silent
}

// append appends the request in the form in which it is sent.
func (r *request) append(b []byte) []byte {
	if r.command != nil {
		return resp.AppendCommand(b, r.command...)
	}
	command, script := "EVALSHA", r.call.Script.SHA1
	if r.source {
		command, script = "EVAL", r.call.Script.Source
	}
	b = resp.AppendHead(b, 3+len(r.call.Keys)+len(r.call.Args))
	b = resp.AppendText(b, command)
	b = resp.AppendText(b, script)
	b = resp.AppendText(b, strconv.Itoa(len(r.call.Keys)))
	for _, key := range r.call.Keys {
		b = resp.AppendText(b, key)
	}
	for _, arg := range r.call.Args {
		b = resp.AppendText(b, arg)
	}
	return b
}

// answered passes on the reply. Its parts are in memory, if they fit.
func (r *request) answered(reply resp.Reply, memory []string) {
	switch {
	case r.givenUp:
	case r.raw != nil:
		r.raw(reply, nil)
	default:
		parts := memory[:0]
		if reply.Items == nil {
			parts = append(parts, reply.Text)
		}
		for _, item := range reply.Items {
			parts = append(parts, item.Text)
		}
		r.done(parts, nil)
	}
}

// failed passes on an error.
func (r *request) failed(err error) {
	var server resp.ServerError
	if errors.As(err, &server) {
		err = redis.NewServerError(string(server))
	}
	switch {
	case r.givenUp:
	case r.raw != nil:
		r.raw(resp.Reply{}, err)
	default:
		r.done(nil, err)
	}
}

// concerns reports whether two requests are about the same name and value: the
// first key and the first argument of a script.
func (r *request) concerns(other *request) bool {
	a, b := &r.call, &other.call
	if len(a.Keys) == 0 || len(a.Args) == 0 || len(b.Keys) == 0 || len(b.Args) == 0 {
		return false
	}
	return a.Keys[0] == b.Keys[0] && a.Args[0] == b.Args[0]
}

// join passes the answer on to an earlier request, too, which is not sent. Neither
// waits longer than the earlier one would.
func (r *request) join(earlier *request) {
	first, then := earlier.done, r.done
	r.done = func(reply []string, err error) {
		first(reply, err)
		then(reply, err)
	}
	if r.deadline == 0 || earlier.deadline != 0 && earlier.deadline < r.deadline {
		r.limit, r.deadline = earlier.limit, earlier.deadline
	}
}

// unknownScript reports that the server does not know the digest of a script.
func (r *request) unknownScript(err error) bool {
	server, ok := err.(resp.ServerError)
	return ok && r.command == nil && !r.source && redis.NewServerError(string(server)).Code == "NOSCRIPT"
}

// queue is requests in order.
type queue struct {
	requests []request
	head     int
}

// mostSpare is for how many requests an empty queue keeps its memory.
const mostSpare = 1024

func (q *queue) len() int          { return len(q.requests) - q.head }
func (q *queue) at(i int) *request { return &q.requests[q.head+i] }
func (q *queue) all() []request    { return q.requests[q.head:] }
func (q *queue) push(r request)    { q.requests = append(q.requests, r) }
func (q *queue) pop() (r request) {
	r, q.requests[q.head] = q.requests[q.head], request{}
	q.head++
	if q.head == len(q.requests) {
		if q.requests, q.head = q.requests[:0], 0; cap(q.requests) > mostSpare {
			q.requests = nil
		}
	} else if q.head >= 64 && 2*q.head >= len(q.requests) {
		n := copy(q.requests, q.requests[q.head:])
		clear(q.requests[n:])
		q.requests, q.head = q.requests[:n], 0
	}
	return r
}

// drop removes those of the last n requests that were given up, and returns the
// others.
func (q *queue) drop(n int) []request {
	first := len(q.requests) - n
	kept := slices.DeleteFunc(q.requests[first:], func(r request) bool { return r.givenUp })
	q.requests = q.requests[:first+len(kept)]
	return kept
}
