package nodetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

func keepMutants() []mutant {
	return []mutant{
		{
			name:   "frees what is to be kept",
			do:     rewrite(func(req *node.Request) { req.Keep = 0 }),
			claims: []string{"a release with Keep leaves the name taken until Keep is over", "a release with Keep raises the fence and leaves the queue"},
		},
		{
			name:   "keeps for ever",
			do:     rewrite(func(req *node.Request) { req.Keep *= 1000 }),
			claims: []string{"a release with Keep leaves the name taken until Keep is over"},
		},
		{
			name: "prolongs what it keeps",
			do: instead(node.OpRelease, func(n *broken, req node.Request) node.Reply {
				if req.Keep > 0 {
					n.ask(node.Request{Op: node.OpExtend, Name: req.Name, Value: req.Value, TTL: req.Keep})
				}
				return n.ask(req)
			}),
			claims: []string{"a release with Keep never prolongs"},
		},
		{
			name: "leaves the fence when it keeps",
			do: instead(node.OpRelease, func(n *broken, req node.Request) node.Reply {
				if req.Keep > 0 {
					req.Token = 0
				}
				return n.ask(req)
			}),
			claims: []string{"a release with Keep raises the fence and leaves the queue"},
		},
	}
}

// recording breaks a node by changing its requests about records.
func recording(change func(req *node.Request)) breakage {
	return rewrite(func(req *node.Request) {
		if req.Op >= node.OpComplete {
			change(req)
		}
	})
}

// adopting breaks a node by changing what it adopts.
func adopting(change func(a *node.Adoption)) breakage {
	return rewrite(func(req *node.Request) {
		if req.Op == node.OpAdopt && len(req.Adopt.Records) <= node.MaxRecords {
			a := *req.Adopt
			change(&a)
			req.Adopt = &a
		}
	})
}

func recordMutants() []mutant {
	const shown = "a look shows what is completed, the newest first, and since when that is complete"
	remembers := func(f func(n *broken, req node.Request)) breakage {
		return func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
			if req.Op == node.OpComplete && ctx.Err() == nil {
				f(n, req)
			}
			return n.Node.Do(ctx, req)
		}
	}
	return []mutant{
		{
			name: "records nothing",
			do: recording(func(req *node.Request) {
				if req.Op == node.OpComplete && len(req.Occurrence) <= node.MaxOccurrence && req.Occurrence != "" {
					req.Op = node.OpCheck
				}
			}),
			claims: []string{"an occurrence is completed when it was recorded", "a record touches neither lock nor fence"},
		},
		{
			name: "a question records",
			do: recording(func(req *node.Request) {
				if req.Op == node.OpCheck && req.Occurrence != "" && len(req.Occurrence) <= node.MaxOccurrence {
					req.Op = node.OpComplete
				}
			}),
			claims: []string{"an occurrence is completed when it was recorded"},
		},
		{
			name:   "one record for all names",
			do:     recording(func(req *node.Request) { req.Name = "all" }),
			claims: []string{"occurrences of two names, and two of one name, are independent"},
		},
		{
			name:   "cuts an occurrence at a zero byte",
			do:     recording(func(req *node.Request) { req.Occurrence, _, _ = strings.Cut(req.Occurrence, "\x00") }),
			claims: []string{"occurrences of two names, and two of one name, are independent"},
		},
		{
			name:   "never forgets",
			do:     recording(func(req *node.Request) { req.Retention *= 1000 }),
			claims: []string{"a record is forgotten when its retention is over", "a memory of a name has a beginning, and keeps it"},
		},
		{
			name: "forgets all records with the first",
			do: recording(func(req *node.Request) {
				if req.Retention > time.Second {
					req.Retention = 100 * time.Millisecond
				}
			}),
			claims: []string{"a record is forgotten when its retention is over"},
		},
		{
			name: "a memory begins with the last question",
			do: misreport(func(_ node.Request, r *node.Reply) {
				if r.Memory != nil {
					r.Memory.Begun, r.Memory.Since = r.Now, r.Now
				}
			}),
			claims: []string{"a memory of a name has a beginning, and keeps it"},
		},
		{
			name: "a record frees the name",
			do: remembers(func(n *broken, req node.Request) {
				n.evict(req)
			}),
			claims: []string{"a record touches neither lock nor fence"},
		},
		{
			name: "accepts any occurrence",
			do: recording(func(req *node.Request) {
				if req.Occurrence == "" || len(req.Occurrence) > node.MaxOccurrence {
					req.Occurrence = "x"
				}
			}),
			claims: []string{"an occurrence that is not valid is an error without effect"},
		},
		{
			name: "a new memory is kept",
			do: misreport(func(_ node.Request, r *node.Reply) {
				if r.Memory != nil {
					r.Memory.Kept = true
				}
			}),
			claims: []string{"a memory is kept when it is whole, or longer than the retention"},
		},
		{
			name:   "adopts without becoming whole",
			do:     adopting(func(a *node.Adoption) { a.Whole = false }),
			claims: []string{"a memory is kept when it is whole, or longer than the retention"},
		},
		{
			name:   "is whole after a part of the records",
			do:     adopting(func(a *node.Adoption) { a.Whole, a.Since = true, a.Begun }),
			claims: []string{"records of others are adopted by the memory that they are for"},
		},
		{
			name: "adopts for a memory that it has lost",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Op == node.OpAdopt && len(req.Adopt.Records) <= node.MaxRecords {
					check := req
					check.Op, check.Occurrence = node.OpCheck, "any"
					a := *req.Adopt
					a.Begun = n.ask(check).Memory.Begun
					req.Adopt = &a
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"records of others are adopted by the memory that they are for"},
		},
		{
			name:   "adopts no records",
			do:     adopting(func(a *node.Adoption) { a.Records = nil }),
			claims: []string{"records of others are adopted by the memory that they are for"},
		},
		{
			name:   "reads all records again",
			do:     recording(func(req *node.Request) { req.Skip = 0 }),
			claims: []string{"records are read, the newest first"},
		},
		{
			name:   "shows no records",
			read:   misreading{look: func(_ *broken, l *node.Listing) { l.Completed = nil }},
			claims: []string{shown},
		},
		{
			name:   "shows the oldest record first",
			read:   misreading{look: func(_ *broken, l *node.Listing) { slices.Reverse(l.Completed) }},
			claims: []string{shown},
		},
		{
			name: "shows when a record was made for when it is forgotten",
			read: misreading{look: func(_ *broken, l *node.Listing) {
				for i := range l.Completed {
					l.Completed[i].Until = l.Reply.Now
				}
			}},
			claims: []string{shown},
		},
		{
			name:   "does not show since when records are complete",
			read:   misreading{look: func(_ *broken, l *node.Listing) { l.Since = time.Time{} }},
			claims: []string{shown},
		},
		{
			name: "lists records",
			read: misreading{list: func(n *broken, prefix string, found func(node.Listing)) {
				n.listed(prefix, func(l node.Listing) {
					look, _ := n.Look(context.Background(), l.Name)
					found(look)
				})
			}},
			claims: []string{shown},
		},
	}
}
