package nodetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// A mutant is a node that is wrong in one way, and the claims that must fail on
// it.
type mutant struct {
	name   string
	do     breakage
	read   misreading
	tell   garbling
	kind   string // "" for a node that keeps a queue and forgets fences
	claims []string
}

func mutants() []mutant {
	var all []mutant
	for _, some := range [][]mutant{holdMutants(), textMutants(), callMutants(), tokenMutants(), fenceMutants(), queueMutants(), wakeMutants(), breakMutants(), listMutants(), shareMutants(), keepMutants(), recordMutants()} {
		all = append(all, some...)
	}
	return all
}

func holdMutants() []mutant {
	return []mutant{
		{
			name: "grants what is held",
			do: instead(node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				n.evict(req)
				return n.ask(req)
			}),
			claims: []string{
				"a refused caller learns who holds, and for how long", "a lock expires by itself",
				"one of many at once is granted", "held is answered before any fault of the token",
			},
		},
		{
			name:   "has a clock that stands still",
			do:     misreport(func(_ node.Request, r *node.Reply) { r.Now = time.Unix(1e9, 0) }),
			claims: []string{"the node's clock runs on"},
		},
		{
			name: "refuses the holder who asks again",
			do: instead(node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				look := req
				look.Op = node.OpInspect
				if held := n.ask(look); held.Status == node.Held {
					return held
				}
				return n.ask(req)
			}),
			claims: []string{"asking again is granted and refreshes", "asking again with a higher token raises the fence"},
		},
		{
			name: "does not release",
			do: instead(node.OpRelease, func(n *broken, req node.Request) node.Reply {
				req.Op = node.OpExtend
				return n.ask(req)
			}),
			claims: []string{"releasing twice is harmless"},
		},
		{
			name: "extends without comparing",
			do: instead(node.OpExtend, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if reply.Status == node.Held {
					req.Value = reply.Value
					n.ask(req)
				}
				return reply
			}),
			claims: []string{"extend by another value changes nothing"},
		},
		{
			name: "says extended and is not",
			do: instead(node.OpExtend, func(n *broken, req node.Request) node.Reply {
				look := req
				look.Op = node.OpInspect
				reply := n.ask(look)
				if reply.Status == node.Held && reply.Value == req.Value {
					reply.Status = node.Granted
				}
				return reply
			}),
			claims: []string{"extend lengthens", "extension renews the fence's retention"},
		},
		{
			name:   "never lets a lock expire",
			do:     rewrite(func(req *node.Request) { req.TTL *= 1000 }),
			claims: []string{"a lock expires by itself", "extend never creates", "the fence outlives expiry"},
		},
		{
			name: "extends by inspecting",
			do: instead(node.OpInspect, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if reply.Status == node.Held {
					req.Op, req.Value = node.OpExtend, reply.Value
					n.ask(req)
				}
				return reply
			}),
			claims: []string{"inspect changes nothing"},
		},
		{
			name: "drops its locks when it is closed",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if n.shut {
					n.evict(req)
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"closing a node leaves its locks"},
		},
	}
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
		{
			name: "looks before it grants and is overtaken",
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
			}),
			claims: []string{"one of many at once is granted"},
		},
		{
			name: "refuses an unknown mode after the deed",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Mode == node.Exclusive {
					return n.Node.Do(ctx, req)
				}
				req.Share = node.Share{}
				n.ask(req)
				return node.Reply{}, fmt.Errorf("unknown mode")
			},
			claims: []string{"an unknown mode is an error without effect"},
		},
		{
			name: "takes an unknown operation for an inspection",
			do: rewrite(func(req *node.Request) {
				if req.Op.String() == "unknown operation" {
					req.Op = node.OpInspect
				}
			}),
			claims: []string{"an unknown operation is an error without effect"},
		},
		{
			name: "does not look at the context",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				return n.Node.Do(context.WithoutCancel(ctx), req)
			},
			claims: []string{"a context that has ended is an error without effect"},
		},
		{
			name: "does not say that nothing was sent",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if err := ctx.Err(); err != nil {
					return node.Reply{}, err
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"a context that has ended is an error without effect"},
		},
		{
			name: "does not say that the context ended it",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if ctx.Err() != nil {
					return node.Reply{}, node.ErrUnsent
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"a context that has ended is an error without effect"},
		},
	}
}
