package nodetest

import (
	"strings"

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
			name: "prolongs what it keeps",
			do: instead(node.OpRelease, func(n *broken, req node.Request) node.Reply {
				if req.Keep > 0 {
					n.ask(node.Request{Op: node.OpExtend, Name: req.Name, Value: req.Value, TTL: req.Keep})
				}
				return n.ask(req)
			}),
			claims: []string{"a release with Keep never prolongs"},
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
			name: "accepts any occurrence",
			do: recording(func(req *node.Request) {
				if req.Occurrence == "" || len(req.Occurrence) > node.MaxOccurrence {
					req.Occurrence = "x"
				}
			}),
			claims: []string{"an occurrence that is not valid is an error without effect"},
		},
		{
			name: "a memory knows the last retention",
			do: misreport(func(req node.Request, r *node.Reply) {
				if r.Memory != nil {
					r.Memory.Retention = req.Retention
				}
			}),
			claims: []string{"a memory knows the longest retention"},
		},
		{
			name:   "adopts without becoming whole",
			do:     adopting(func(a *node.Adoption) { a.Whole = false }),
			claims: []string{"a memory is whole after an adoption that makes it whole"},
		},
		{
			name:   "is whole after a part of the records",
			do:     adopting(func(a *node.Adoption) { a.Whole, a.Since = true, a.Begun }),
			claims: []string{"records of others are adopted by the memory that they are for"},
		},
		{
			name:   "reads all records again",
			do:     recording(func(req *node.Request) { req.Skip = 0 }),
			claims: []string{"records are read, the newest first"},
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
	}
}
