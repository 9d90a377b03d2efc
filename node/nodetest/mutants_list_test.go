package nodetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// A misreading changes what a node lists, or what it returns for a Look.
type misreading struct {
	list func(n *broken, prefix string, found func(node.Listing))
	look func(n *broken, l *node.Listing)
}

func (n *broken) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	if n.read.list == nil {
		return n.Node.List(ctx, prefix, found)
	}
	n.read.list(n, prefix, found)
	return nil
}

func (n *broken) Look(ctx context.Context, name string) (node.Listing, error) {
	l, err := n.Node.Look(ctx, name)
	if n.read.look != nil && err == nil {
		n.read.look(n, &l)
	}
	return l, err
}

// listed lists as a healthy node does.
func (n *broken) listed(prefix string, found func(node.Listing)) {
	n.Node.List(context.Background(), prefix, found)
}

func listMutants() []mutant {
	change := func(f func(l *node.Listing)) misreading {
		return misreading{
			list: func(n *broken, prefix string, found func(node.Listing)) {
				n.listed(prefix, func(l node.Listing) { f(&l); found(l) })
			},
			look: func(_ *broken, l *node.Listing) { f(l) },
		}
	}
	return []mutant{
		{
			name:   "lists nothing",
			read:   misreading{list: func(*broken, string, func(node.Listing)) {}},
			claims: []string{"a held name is listed with its holder", "names are independent, however odd", "a listing keeps to its prefix"},
		},
		{
			name: "lists what was held",
			read: misreading{list: func(n *broken, prefix string, found func(node.Listing)) {
				n.listed(prefix, found)
				found(node.Listing{Name: prefix, Reply: node.Reply{Status: node.Absent}})
			}},
			claims: []string{"a free name is not listed"},
		},
		{
			name:   "tidies the names that it lists",
			read:   change(func(l *node.Listing) { l.Name = strings.NewReplacer("{", "", "}", "").Replace(l.Name) }),
			claims: []string{"names are independent, however odd"},
		},
		{
			name: "lists a part of the names",
			read: misreading{list: func(n *broken, prefix string, found func(node.Listing)) {
				left := 5
				n.listed(prefix, func(l node.Listing) {
					if left--; left >= 0 {
						found(l)
					}
				})
			}},
			claims: []string{"names are independent, however odd"},
		},
		{
			name: "takes a prefix for a pattern",
			read: misreading{list: func(n *broken, prefix string, found func(node.Listing)) {
				n.listed(strings.TrimSuffix(prefix, "*"), found)
			}},
			claims: []string{"a listing keeps to its prefix"},
		},
		{
			name: "forgets a break with the next grant",
			read: change(func(l *node.Listing) {
				if l.Reply.Status == node.Held {
					l.Broken = 0
				}
			}),
			claims: []string{"a break of a holder is listed, also after the next grant"},
		},
		{
			name: "extends by looking",
			read: misreading{look: func(n *broken, l *node.Listing) {
				n.ask(node.Request{Op: node.OpExtend, Name: l.Name, Value: l.Reply.Value, TTL: time.Hour})
			}},
			claims: []string{"looking changes nothing"},
		},
		{
			name:   "lists waiters in the wrong order",
			read:   change(func(l *node.Listing) { slices.Reverse(l.Waiters) }),
			claims: []string{"a name is listed with its waiters"},
		},
	}
}
