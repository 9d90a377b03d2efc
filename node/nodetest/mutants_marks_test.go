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

// marking breaks a node by changing its requests about marks.
func marking(change func(req *node.Request)) breakage {
	return rewrite(func(req *node.Request) {
		if req.Op == node.OpRemember || req.Op == node.OpRecall {
			change(req)
		}
	})
}

func markMutants() []mutant {
	const shown = "a look shows what is done, the newest first, and since when it is remembered"
	remembers := func(f func(n *broken, req node.Request)) breakage {
		return func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
			if req.Op == node.OpRemember && ctx.Err() == nil {
				f(n, req)
			}
			return n.Node.Do(ctx, req)
		}
	}
	return []mutant{
		{
			name: "remembers nothing",
			do: marking(func(req *node.Request) {
				if len(req.Occurrence) <= node.MaxOccurrence && req.Occurrence != "" {
					req.Op = node.OpRecall
				}
			}),
			claims: []string{"an occurrence is done when it was remembered", "a mark touches neither lock nor fence"},
		},
		{
			name: "a question marks",
			do: marking(func(req *node.Request) {
				if req.Occurrence != "" && len(req.Occurrence) <= node.MaxOccurrence {
					req.Op = node.OpRemember
				}
			}),
			claims: []string{"an occurrence is done when it was remembered"},
		},
		{
			name:   "one mark for all names",
			do:     marking(func(req *node.Request) { req.Name = "all" }),
			claims: []string{"occurrences of two names, and two of one name, are independent"},
		},
		{
			name:   "cuts an occurrence at a zero byte",
			do:     marking(func(req *node.Request) { req.Occurrence, _, _ = strings.Cut(req.Occurrence, "\x00") }),
			claims: []string{"occurrences of two names, and two of one name, are independent"},
		},
		{
			name:   "never forgets",
			do:     marking(func(req *node.Request) { req.Retention *= 1000 }),
			claims: []string{"a mark is forgotten when its retention is over", "a node notes since when it remembers"},
		},
		{
			name: "forgets all marks with the first",
			do: marking(func(req *node.Request) {
				if req.Retention > time.Second {
					req.Retention = 100 * time.Millisecond
				}
			}),
			claims: []string{"a mark is forgotten when its retention is over"},
		},
		{
			name: "remembers since the last question",
			do: misreport(func(_ node.Request, r *node.Reply) {
				if !r.Since.IsZero() {
					r.Since = r.Now
				}
			}),
			claims: []string{"a node notes since when it remembers"},
		},
		{
			name: "a mark frees the name",
			do: remembers(func(n *broken, req node.Request) {
				n.evict(req)
			}),
			claims: []string{"a mark touches neither lock nor fence"},
		},
		{
			name: "accepts any occurrence",
			do: marking(func(req *node.Request) {
				if req.Occurrence == "" || len(req.Occurrence) > node.MaxOccurrence {
					req.Occurrence = "x"
				}
			}),
			claims: []string{"an occurrence that is not valid is an error without effect"},
		},
		{
			name:   "shows no marks",
			read:   misreading{look: func(_ *broken, l *node.Listing) { l.Marks = nil }},
			claims: []string{shown},
		},
		{
			name:   "shows the oldest mark first",
			read:   misreading{look: func(_ *broken, l *node.Listing) { slices.Reverse(l.Marks) }},
			claims: []string{shown},
		},
		{
			name: "shows when a mark was made for when it is forgotten",
			read: misreading{look: func(_ *broken, l *node.Listing) {
				for i := range l.Marks {
					l.Marks[i].Until = l.Reply.Now
				}
			}},
			claims: []string{shown},
		},
		{
			name:   "does not show since when it remembers",
			read:   misreading{look: func(_ *broken, l *node.Listing) { l.Since = time.Time{} }},
			claims: []string{shown},
		},
		{
			name: "lists marks",
			read: misreading{list: func(n *broken, prefix string, found func(node.Listing)) {
				n.listed(prefix, func(l node.Listing) {
					look, _ := n.Look(context.Background(), l.Name)
					found(look)
				})
			}},
			claims: []string{shown},
		},
		{
			name:   "knows marks though it says that it does not",
			kind:   "no shares",
			do:     func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) { return n.Node.Do(ctx, req) },
			claims: []string{"a node that remembers nothing refuses to"},
		},
	}
}
