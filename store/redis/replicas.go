package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/risk"
	"github.com/redlatch/redlatch/store/redis/internal/conns"
)

var _ node.ReplicaCounter = (*Node)(nil)

// sentinelLimit is how long a sentinel may take to answer.
const sentinelLimit = 3 * time.Second

// ListedReplicas returns how many replicas the sentinels list, those that are
// down included: the highest number that one of them names. The error says that
// none answered. The sentinels of a client that is not ours are not known.
func (n *Node) ListedReplicas(ctx context.Context) (most int, known bool, err error) {
	if n.sentinels == nil {
		return 0, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, sentinelLimit)
	defer cancel()
	hosts := n.sentinels.Hosts
	numbers, errs := make([]int, len(hosts)), make([]error, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() {
			if numbers[i], errs[i] = n.sentinels.replicasBy(ctx, host); errs[i] != nil {
				errs[i] = fmt.Errorf("sentinel %s: %w", host, errs[i])
			}
		})
	}
	all.Wait()
	if !slices.Contains(errs, nil) {
		return 0, true, errors.Join(errs...)
	}
	return slices.Max(numbers), true, nil
}

// replicasBy asks one sentinel.
func (a *Address) replicasBy(ctx context.Context, host string) (int, error) {
	socket, conn, _, err := conns.Connect(ctx, conns.Login{Address: host, TLS: a.TLS, Username: a.SentinelUsername, Password: a.SentinelPassword})
	if err != nil {
		return 0, err
	}
	defer socket.Close()
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	state, err := conn.Do("SENTINEL", "MASTER", a.Master)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(state.Items, func(r resp.Reply) bool { return r.Text == "num-slaves" })
	if i < 0 || i+1 == len(state.Items) {
		return 0, errors.New("its reply to SENTINEL MASTER has no num-slaves")
	}
	return strconv.Atoi(state.Items[i+1].Text)
}

// replicas says whether a master that is cut off stops before a replica of it
// that was promoted grants.
func (x *examination) replicas(ctx context.Context, info map[string]string) {
	if !x.exam.Guarded || info["role"] != "master" || x.n.driver.Kind() == Cluster {
		return
	}
	connected, _ := strconv.Atoi(info["connected_slaves"])
	if listed, _, err := x.n.ListedReplicas(ctx); err == nil {
		connected = max(connected, listed) // one that is down may be with another master
	}
	online, need := onlineReplicas(info, x.exam.ReplicaLag), x.exam.Replicas
	const (
		two    = "a master that is cut off together with a holder goes on extending while a promoted replica grants: two holders"
		number = "the number of all replicas; to change it, run redlatch init --replicas N with the same addresses in --nodes and --former"
	)
	switch {
	case need == 0 && x.n.driver.Kind() == Sentinel:
		x.add(risk.Danger, "replicas", "no replica is required, behind Sentinel", two, "require "+number)
	case need == 0 && connected > 0:
		x.add(risk.Warning, "replicas", fmt.Sprintf("it has %d replicas, and none is required", connected),
			"if one of them is promoted behind this address while this server lives on: "+two, "require "+number)
	case need == 0:
	case online < need:
		x.add(risk.Danger, "replicas", fmt.Sprintf("%d of %d required replicas are online with a lag of %v or less", online, need, x.exam.ReplicaLag),
			"it grants and extends nothing", "bring them back; if they were removed for good, require "+number)
	case connected > need:
		x.add(risk.Warning, "replicas", fmt.Sprintf("it has %d replicas, and %d must be online", connected, need),
			"where so many can stay with a master that is cut off, it goes on beside the promoted one", "require "+number)
	default:
		x.add(risk.Fine, "replicas", fmt.Sprintf("all %d required replicas are online", need), "", "")
	}
}

// onlineReplicas counts as lua/lib/marker.lua does.
func onlineReplicas(info map[string]string, lag time.Duration) int {
	n := 0
	for i := 0; info["slave"+strconv.Itoa(i)] != ""; i++ {
		line := info["slave"+strconv.Itoa(i)]
		_, after, _ := strings.Cut(line, ",lag=")
		after, _, _ = strings.Cut(after, ",")
		seconds, err := strconv.Atoi(after)
		if strings.Contains(line, ",state=online,") && err == nil && seconds >= 0 && time.Duration(seconds)*time.Second <= lag {
			n++
		}
	}
	return n
}
