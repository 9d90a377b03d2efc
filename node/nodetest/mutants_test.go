package nodetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/node"
)

// A mutant is a store that is wrong in one way, and the claims that must fail on
// it. What breaks a rule of nodes is in the table of rules.
type mutant struct {
	name   string
	do     breakage
	list   misreading
	kind   string // "" for a node that keeps a queue and forgets fences
	claims []string
}

func wrongStores() []mutant {
	return slices.Concat(textMutants(), callMutants(), listMutants(), []mutant{
		{name: "forgets a fence that it should keep", kind: "keeps fences", claims: []string{"a fence binds beyond its retention"},
			do: rewrite(func(*node.Request) {})},
		{name: "drops its locks when it is closed", claims: []string{"closing a node leaves its locks"},
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if n.shut {
					n.evict(req)
				}
				return n.Node.Do(ctx, req)
			}},
	})
}

func textMutants() []mutant {
	value := func(change func(string) string) breakage {
		return rewrite(func(req *node.Request) { req.Value = change(req.Value) })
	}
	name := func(change func(string) string) breakage {
		return rewrite(func(req *node.Request) { req.Name = change(req.Name) })
	}
	prefix := func(s string) string { return s[:min(len(s), 12)] }
	var all []mutant
	for what, do := range map[string]breakage{
		"compares the beginning of values": value(prefix),
		"compares values without case":     value(strings.ToLower),
		"trims values":                     value(strings.TrimSpace),
		"ends values at a zero byte":       value(func(s string) string { s, _, _ = strings.Cut(s, "\x00"); return s }),
	} {
		all = append(all, mutant{name: what, do: do, claims: []string{"values are compared whole and exactly", "values come back byte for byte"}})
	}
	all = append(all, mutant{
		name:   "takes values for text",
		do:     value(func(s string) string { return strings.ToValidUTF8(s, "?") }),
		claims: []string{"values come back byte for byte"},
	})
	for what, do := range map[string]breakage{
		"cuts names at 255 bytes":     name(func(s string) string { return s[:min(len(s), 255)] }),
		"compares names without case": name(strings.ToLower),
		"trims names":                 name(func(s string) string { return strings.ReplaceAll(s, " ", "") }),
		"takes names for text":        name(func(s string) string { return strings.ToValidUTF8(s, "") }),
		"cleans names as paths":       name(func(s string) string { return strings.ReplaceAll(s, "//", "/") }),
		"drops hash tags":             name(func(s string) string { return strings.NewReplacer("{", "", "}", "").Replace(s) }),
		"ends names at a zero byte":   name(func(s string) string { s, _, _ = strings.Cut(s, "\x00"); return s }),
	} {
		all = append(all, mutant{name: what, do: do, claims: []string{"names are independent, however odd"}})
	}
	return all
}

func callMutants() []mutant {
	return []mutant{
		{name: "looks before it grants and is overtaken", claims: []string{"one of many at once is granted"},
			do: instead(node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				look := req
				look.Op = node.OpInspect
				free := n.ask(look).Status == node.Absent
				n.mu.Unlock()
				for range 1000 {
					runtime.Gosched()
				}
				n.mu.Lock()
				if free {
					n.evict(req)
					req.Token = 0
				}
				return n.ask(req)
			})},
		{name: "refuses an unknown mode after the deed", claims: []string{"an unknown mode is an error without effect"},
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Mode == node.Exclusive {
					return n.Node.Do(ctx, req)
				}
				req.Share = node.Share{}
				n.ask(req)
				return node.Reply{}, fmt.Errorf("unknown mode")
			}},
		{name: "takes an unknown operation for an inspection", claims: []string{"an unknown operation is an error without effect"},
			do: rewrite(func(req *node.Request) {
				if req.Op.String() == "unknown operation" {
					req.Op = node.OpInspect
				}
			})},
		{name: "does not look at the context", claims: []string{"a context that has ended is an error without effect"},
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				return n.Node.Do(context.WithoutCancel(ctx), req)
			}},
		{name: "does not say that nothing was sent", claims: []string{"a context that has ended is an error without effect"},
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if err := ctx.Err(); err != nil {
					return node.Reply{}, err
				}
				return n.Node.Do(ctx, req)
			}},
		{name: "does not say that the context ended it", claims: []string{"a context that has ended is an error without effect"},
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if ctx.Err() != nil {
					return node.Reply{}, node.ErrUnsent
				}
				return n.Node.Do(ctx, req)
			}},
	}
}

func listMutants() []mutant {
	const odd, prefixed = "names are independent, however odd", "a listing keeps to its prefix"
	return []mutant{
		{name: "lists nothing", claims: []string{"a held name is listed with its holder", odd, prefixed},
			list: func(*broken, string, func(node.Listing)) {}},
		{name: "tidies the names that it lists", claims: []string{odd},
			list: func(n *broken, prefix string, found func(node.Listing)) {
				n.listed(prefix, func(l node.Listing) {
					l.Name = strings.NewReplacer("{", "", "}", "").Replace(l.Name)
					found(l)
				})
			}},
		{name: "lists a part of the names", claims: []string{odd},
			list: func(n *broken, prefix string, found func(node.Listing)) {
				left := 5
				n.listed(prefix, func(l node.Listing) {
					if left--; left >= 0 {
						found(l)
					}
				})
			}},
		{name: "takes a prefix for a pattern", claims: []string{prefixed},
			list: func(n *broken, prefix string, found func(node.Listing)) {
				n.listed(strings.TrimSuffix(prefix, "*"), found)
			}},
	}
}
