package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Watched is implemented by a Driver that can ask the sentinels of its server.
type Watched interface {
	Driver
	// ListedReplicas is that of node.ReplicaLister.
	ListedReplicas(ctx context.Context) (n int, known bool, err error)
}

var _ node.ReplicaLister = (*Node)(nil)

// ListedReplicas returns how many replicas the sentinels list, those that are
// down included.
func (n *Node) ListedReplicas(ctx context.Context) (all int, known bool, err error) {
	if d, ok := n.driver.(Watched); ok {
		return d.ListedReplicas(ctx)
	}
	return 0, false, nil
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
		x.add(node.Danger, "replicas", "no replica is required, behind Sentinel", two, "require "+number)
	case need == 0 && connected > 0:
		x.add(node.Warning, "replicas", fmt.Sprintf("it has %d replicas, and none is required", connected),
			"if one of them is promoted behind this address while this server lives on: "+two, "require "+number)
	case need == 0:
	case online < need:
		x.add(node.Danger, "replicas", fmt.Sprintf("%d of %d required replicas are online with a lag of %v or less", online, need, x.exam.ReplicaLag),
			"it grants and extends nothing", "bring them back; if they were removed for good, require "+number)
	case connected > need:
		x.add(node.Warning, "replicas", fmt.Sprintf("it has %d replicas, and %d must be online", connected, need),
			"where so many can stay with a master that is cut off, it goes on beside the promoted one", "require "+number)
	default:
		x.add(node.Fine, "replicas", fmt.Sprintf("all %d required replicas are online", need), "", "")
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
