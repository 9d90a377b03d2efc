package direct

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/store/redis"
)

// maxBatch is how many requests are sent as one. A server runs nothing else
// meanwhile.
const maxBatch = 32

// refusedFor is for how long requests are sent alone after a server has refused a
// batch, these among them: it may be part of a Cluster, or the user may not use one
// of the names.
const refusedFor = time.Second

// batches is what a connection knows about requests that are sent as one.
type batches struct {
	source bool          // the next one is sent with the script as a whole
	none   time.Duration // since began: until when there are none
	taken  []request     // memory, of the one that reads
}

// compose appends what is to be written: the requests that nobody has written yet,
// in order. Those for different names that are next to each other, and have enough
// in common, become one. A request that was given up is not sent at all: what it
// consists of may be used by another. The mutex is held.
func (c *conn) compose(b []byte) []byte {
	requests := c.pending.drop(c.unsent)
	c.unsent = 0
	for len(requests) > 0 {
		n := 1
		if len(requests) > 1 && (c.batches.none == 0 || c.batches.none < time.Since(began)) {
			n = together(requests)
		}
		if n == 1 {
			b = requests[0].append(b)
		} else {
			b = appendBatch(b, requests[:n], c.batches.source)
			requests[0].batch, c.batches.source = n, false
		}
		requests = requests[n:]
	}
	return b
}

// together returns how many requests, from the first on, can be sent as one.
func together(requests []request) int {
	common := requests[0].call.Batch
	if common == nil {
		return 1
	}
	for n := 1; n < min(len(requests), maxBatch); n++ {
		r := &requests[n]
		if r.call.Batch != common {
			return n
		}
		for i := range n {
			if requests[i].call.Keys[0] == r.call.Keys[0] {
				return n
			}
		}
	}
	return min(len(requests), maxBatch)
}

// appendBatch appends requests as one.
func appendBatch(b []byte, requests []request, source bool) []byte {
	common := requests[0].call.Batch
	command, script := "EVALSHA", redis.BatchScript.SHA1
	if source {
		command, script = "EVAL", redis.BatchScript.Source
	}
	keys := len(requests) + len(common.Keys)
	b = resp.AppendHead(b, 3+keys+len(common.Args)+3*len(requests))
	b = resp.AppendText(b, command)
	b = resp.AppendText(b, script)
	b = resp.AppendText(b, strconv.Itoa(keys))
	for i := range requests {
		b = resp.AppendText(b, requests[i].call.Keys[0])
	}
	for _, key := range common.Keys {
		b = resp.AppendText(b, key)
	}
	for _, arg := range common.Args {
		b = resp.AppendText(b, arg)
	}
	for i := range requests {
		value, token := requests[i].call.Args[0], ""
		if len(requests[i].call.Args) > 1 {
			token = requests[i].call.Args[1]
		}
		b = resp.AppendText(b, requests[i].call.Item)
		b = resp.AppendText(b, value)
		b = resp.AppendText(b, token)
	}
	return b
}

// divide delivers the reply to n requests that were sent as one. The mutex is held,
// and is unlocked.
func (c *conn) divide(n int, reply resp.Reply, err error) {
	requests := c.batches.taken[:0]
	for range n {
		requests = append(requests, c.pending.pop())
	}
	if server, refused := err.(resp.ServerError); refused {
		requests = c.resend(requests, redis.NewServerError(string(server)).Code == "NOSCRIPT")
		err = errOvertaken
	}
	// Those who get a reply send their next requests meanwhile, on other processors. If
	// these were written one after the other, each would be a batch of its own.
	c.passing = true
	c.mu.Unlock()
	for i := range requests {
		if err != nil {
			requests[i].failed(err)
		} else {
			c.pass(&requests[i], n, i, reply)
		}
	}
	clear(requests)
	c.batches.taken = requests
	c.mu.Lock()
	c.passing = false
	c.flush()
}

// resend sends requests again that the server has refused as a whole, so that none
// was executed: one by one, and each gets an answer of its own, unless the server
// only does not know the script. It returns those that cannot be sent again. The
// mutex is held.
func (c *conn) resend(requests []request, unknown bool) (overtaken []request) {
	if unknown {
		c.batches.source = true
	} else {
		c.batches.none = time.Since(began) + refusedFor
	}
	overtaken = requests[:0]
	for _, r := range requests {
		if !r.givenUp && !c.again(r) {
			overtaken = append(overtaken, r)
		}
	}
	clear(requests[len(overtaken):])
	return overtaken
}

// pass delivers one of n replies.
func (c *conn) pass(r *request, n, i int, reply resp.Reply) {
	if len(reply.Items) != n {
		r.failed(fmt.Errorf("redlatch: unexpected reply %.60q to %d requests", reply.String(), n))
		return
	}
	item := reply.Items[i]
	if len(item.Items) == 2 && item.Items[0].Text == "!" {
		r.failed(resp.ServerError(item.Items[1].Text))
		return
	}
	r.answered(item, c.parts[:])
}
