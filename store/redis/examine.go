package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/node/risk"
)

// Settled is implemented by a Driver that can ask for a server's settings.
type Settled interface {
	Driver
	// Setting returns the result of CONFIG GET, which takes one name alone before
	// Redis 7. Many servers do not allow it.
	Setting(ctx context.Context, name string) (map[string]string, error)
}

var _ risk.Examiner = (*Node)(nil)

// Examine checks the server's role, version, memory and persistence, and tries
// the requests of a lock. In a cluster it checks every master.
func (n *Node) Examine(ctx context.Context, exam risk.Exam) ([]risk.Finding, error) {
	x := &examination{n: n, exam: exam}
	x.rights(ctx)
	x.wakes(ctx)
	routes, err := n.routes(ctx)
	if err != nil {
		return x.found, err
	}
	settings := map[string]string{} // empty where it is forbidden to ask
	if d, ok := n.driver.(Settled); ok && n.driver.Kind() != Cluster {
		for _, name := range []string{"appendfsync", "save"} {
			one, _ := d.Setting(ctx, name)
			maps.Copy(settings, one)
		}
	}
	for i, route := range routes {
		r, err := n.driver.Eval(ctx, Call{Script: healthScript, Keys: []string{route}})
		if err != nil {
			return x.found, explain(err)
		}
		if len(r) != 4 {
			return x.found, fmt.Errorf("redlatch: unexpected reply to the health script: it has %d parts", len(r))
		}
		x.shard = ""
		if len(routes) > 1 {
			x.shard = fmt.Sprintf("master %d of %d: ", i+1, len(routes))
		}
		info := parseInfo(strings.Join(r, "\r\n"))
		if len(info) == 0 {
			x.noInfo()
			continue
		}
		x.version(info)
		x.role(info)
		x.replicas(ctx, info)
		x.eviction(info)
		x.persistence(info, settings)
	}
	return x.found, nil
}

// parseInfo reads the lines of INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if key, value, ok := strings.Cut(line, ":"); ok {
			info[key] = value
		}
	}
	return info
}

// examination collects what is found on one node.
type examination struct {
	n     *Node
	exam  risk.Exam
	shard string
	found []risk.Finding
}

func (x *examination) add(s risk.Severity, check, found, means, do string) {
	x.found = append(x.found, risk.Finding{Severity: s, Check: check, Node: x.n.name, Found: x.shard + found, Means: means, Do: do})
}

func (x *examination) noInfo() {
	if x.exam.Guarded {
		x.add(risk.Danger, "info", "the user may not ask INFO", "the restart guard asks it with every grant: no lock is granted", "allow it (+info), or switch the guard off and accept that a server which forgot its locks grants them again")
		return
	}
	x.add(risk.Warning, "info", "the user may not ask INFO", "whether it is a master, may evict, or is listed twice goes unchecked", "allow it: +info")
}

func (x *examination) version(info map[string]string) {
	version := info["redis_version"]
	if v := info["valkey_version"]; v != "" {
		x.add(risk.Fine, "version", "Valkey "+v, "", "")
		return
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err == nil && (major < 6 || major == 6 && minor < 2) {
		x.add(risk.Danger, "version", "Redis "+version, "scripts are tested from 6.2 on", "upgrade to Redis 6.2 or later, or to Valkey")
		return
	}
	x.add(risk.Fine, "version", "Redis "+version, "", "")
}

func (x *examination) role(info map[string]string) {
	switch replicas := info["connected_slaves"]; {
	case info["role"] != "master":
		x.add(risk.Danger, "role", "it is a replica of "+info["master_host"]+":"+info["master_port"],
			"a replica takes no locks, and is no independent node", "give the address of the master, or use redis+sentinel://")
	case replicas != "" && replicas != "0" && x.n.driver.Kind() == Single && !x.exam.Guarded:
		x.add(risk.Warning, "role", "it is a master with "+replicas+" replicas, and the guard is off",
			"if one of them is promoted behind this address, it grants again what is still held", "switch the guard on: --guard on")
	default:
		x.add(risk.Fine, "role", "it is a master", "", "")
	}
}

func (x *examination) eviction(info map[string]string) {
	most, _ := strconv.ParseInt(info["maxmemory"], 10, 64)
	used, _ := strconv.ParseInt(info["used_memory"], 10, 64)
	policy := info["maxmemory_policy"]
	const mend = "set maxmemory-policy noeviction, and give locks a server of their own if a cache needs the policy"
	switch {
	case most > 0 && policy != "noeviction":
		x.add(risk.Danger, "eviction", "it may evict keys when memory is full (maxmemory-policy "+policy+")",
			"an evicted lock is granted to a second holder, and the guard does not see it", mend)
	case policy != "noeviction":
		x.add(risk.Advice, "eviction", "maxmemory-policy is "+policy+", but there is no maxmemory",
			"once somebody sets a maxmemory, locks may be evicted", mend)
	case most > 0 && used > most/10*9:
		x.add(risk.Warning, "memory", fmt.Sprintf("%d %% of maxmemory are used", used*100/most),
			"a full server refuses locks (OOM)", "raise maxmemory, or remove data")
	default:
		x.add(risk.Fine, "eviction", "it does not evict keys", "", "")
	}
}

func (x *examination) persistence(info, settings map[string]string) {
	aof, fsync, save := info["aof_enabled"] == "1", settings["appendfsync"], settings["save"]
	for _, key := range []string{"rdb_last_bgsave_status", "aof_last_write_status"} {
		if s := info[key]; s != "" && s != "ok" {
			x.add(risk.Warning, "persistence", key+" is "+s, "it may soon refuse writes, locks among them (MISCONF)", "see its log, and its disk")
		}
	}
	kept := "nothing is kept over a restart"
	switch {
	case aof && fsync != "":
		kept = "append-only file, appendfsync " + fsync
	case aof:
		kept = "append-only file; appendfsync is not to be found out (CONFIG GET is not allowed)"
	case save != "":
		kept = "snapshots (save " + save + ")"
	case len(settings) == 0:
		kept = "no append-only file"
	}
	switch {
	case x.exam.Guarded:
		x.add(risk.Fine, "persistence", kept+"; the guard is on", "after a restart it is quarantined, even if it kept its data", "")
	case aof && fsync == "always":
		x.add(risk.Fine, "persistence", kept, "", "")
	case aof:
		x.add(risk.Warning, "persistence", kept+"; the guard is off", "a loss of power can take the last grants, and they are granted again", "set appendfsync always, or switch the guard on: --guard on")
	default:
		x.add(risk.Danger, "persistence", kept+"; the guard is off", "after a restart it grants again what is still held", "set appendonly yes and appendfsync always, or switch the guard on: --guard on")
	}
}

// probeLeft is for how long something is left if the connection breaks half way.
const probeLeft = 5 * time.Second

// rights tries the requests of a lock, step by step, under a name of its own.
func (x *examination) rights(ctx context.Context) {
	n := x.n
	try := func(req node.Request, waits bool) (node.Reply, error) {
		// Not by Do: a request that waits would open the node's inbox.
		r := run{node: n, req: req, place: place{wait: waits}}
		call, err := r.prepare()
		if err != nil {
			return node.Reply{}, err
		}
		return r.read(n.driver.Eval(ctx, call))
	}
	first := node.Request{Name: x.exam.Name, Value: rand.Text(), TTL: probeLeft, Fencing: node.Fencing{Retention: probeLeft, Window: x.exam.Window}}
	second := first
	second.Value = rand.Text()
	look, err := try(withOp(first, node.OpInspect), false)
	if err == nil {
		first.Token = node.Token(look.Now.UnixMicro())
		second.Token, second.Ticket, second.Wait = first.Token+1, int64(first.Token), true
		var reply node.Reply
		for _, step := range []struct {
			op  node.Op
			req node.Request
		}{
			{node.OpAcquire, first}, {node.OpExtend, first}, {node.OpAcquire, second},
			{node.OpRelease, second}, {node.OpRelease, first},
		} {
			if reply, err = try(withOp(step.req, step.op), step.req.Wait && step.op == node.OpAcquire); err != nil {
				err = fmt.Errorf("%v: %w", step.op, err)
				break
			}
		}
		if err == nil {
			err = x.forget(ctx, reply.Fence)
		}
	}
	var server *ServerError
	switch {
	case err == nil:
		x.add(risk.Fine, "rights", "a lock can be taken, extended, waited for and released", "", "")
	case errors.As(err, &server):
		do := cmp.Or(server.Hint(), "see the server's log")
		if server.Forbidden() {
			do = "allow what is missing; docs/operations.md has the whole ACL. If only names under a prefix are allowed, give doctor one with --name"
		}
		x.add(risk.Danger, "rights", lockerrors.Text(err), "locks are unavailable, or cannot be kept", do)
	default:
		x.add(risk.Warning, "rights", lockerrors.Text(err), "unknown whether locks are available", "try again")
	}
	if _, err := n.driver.Eval(ctx, Call{Script: scanScript, Keys: []string{reserved + "identity"}, Args: []string{"0", "1"}}); errors.As(err, &server) && server.Forbidden() {
		x.add(risk.Advice, "rights", "the user may not SCAN", "redlatch ls does not work", "allow it, where that is wanted: +scan +zcard")
	}
}

// forget deletes the fence of the name that was tried, if it is this one still: no key
// must be left that would show that locks were kept here. To the release script it
// is a lock with the fence as its value. If the fence is another one by now, it is
// raised by that, and expires.
func (x *examination) forget(ctx context.Context, fence node.Token) error {
	key, text := sideKey("fence", x.exam.Name), fence.String()
	_, err := x.n.driver.Eval(ctx, Call{Script: releaseScript, Keys: []string{key, key, sideKey("turn", x.exam.Name)}, Args: []string{text, text, "", milliseconds(probeLeft)}})
	return err
}

func withOp(req node.Request, op node.Op) node.Request {
	req.Op = op
	return req
}

// wakes tries whether a waiter can be notified.
func (x *examination) wakes(ctx context.Context) {
	sub, ok := x.n.driver.(Subscriber)
	if !ok {
		return
	}
	const poll = "waiters poll"
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	channel, heard := inboxPrefix+"doctor-"+rand.Text(), make(chan struct{}, 1)
	up, over := make(chan struct{}, 1), make(chan error, 1)
	tell := func(c chan<- struct{}) {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	go func() {
		over <- sub.Subscribe(ctx, channel, func() { tell(up) }, func(string) { tell(heard) })
	}()
	const mend = "allow it: +subscribe +publish &redlatch:1:inbox:*"
	select {
	case <-up:
	case err := <-over:
		x.add(risk.Warning, "wakes", "SUBSCRIBE: "+err.Error(), poll, mend)
		return
	}
	reply, err := x.n.driver.Eval(ctx, Call{Script: publishScript, Keys: []string{reserved + "identity"}, Args: []string{channel}})
	if err == nil && len(reply) == 1 && reply[0] != "" {
		err = errors.New(reply[0])
	}
	if err != nil {
		x.add(risk.Warning, "wakes", "PUBLISH: "+err.Error(), poll, mend)
		return
	}
	select {
	case <-heard:
		x.add(risk.Fine, "wakes", "waiters can be notified", "", "")
	case <-ctx.Done():
		x.add(risk.Warning, "wakes", "a message was sent and did not arrive", poll, "see whether something between here and the server cuts connections that listen")
	}
}
