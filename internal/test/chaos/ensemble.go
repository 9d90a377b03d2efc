//go:build unix

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// ensemble is a cluster of etcd or ZooKeeper with three members: one node. Its
// address has those of its members, with a plus between them.
type ensemble struct {
	kind    ServerKind
	members []*servertest.Database
}

const membersOfEach = 3

// ensembles are the kinds whose node is a cluster of members.
var ensembles = []ServerKind{Etcd, ZooKeeper}

// toWorkIn is how long a cluster has no other fault of its members after one: it elects a
// leader, and clients get locks.
const toWorkIn = 3 * time.Second

// session is how long a client's session with ZooKeeper lasts. It is short, so that it
// expires while a client is paused or cut off.
const session = 2 * time.Second

// Start creates the members and starts them.
func (e *ensemble) Start() (err error) {
	if e.kind == Etcd {
		e.members, err = servertest.NewEtcd(membersOfEach)
	} else {
		e.members, err = servertest.NewZooKeeper(membersOfEach, "tickTime=500", "syncLimit=4", "maxClientCnxns=0")
	}
	if err != nil {
		return err
	}
	return servertest.Together(e.members, (*servertest.Database).Start)
}

// Stop ends them.
func (e *ensemble) Stop() {
	for _, m := range e.members {
		m.Stop()
	}
}

// Addr returns the addresses of the members.
func (e *ensemble) Addr() string { return strings.Join(servertest.Hosts(e.members), "+") }

// URL returns the node's address.
func (e *ensemble) URL(addresses string) string {
	if e.kind == Etcd {
		return "etcd://" + addresses + "/torture"
	}
	return fmt.Sprintf("zookeeper://%s/torture?session=%v", addresses, session)
}

// leads reports whether a member says that it is the leader.
func (e *ensemble) leads(m *servertest.Database) bool {
	if e.kind == Etcd {
		var s struct {
			Header struct {
				Member string `json:"member_id"`
			}
			Leader string
		}
		err := tell(m, "maintenance/status", nil, &s)
		return err == nil && s.Leader != "" && s.Leader == s.Header.Member
	}
	answer, _ := servertest.AskZooKeeper(m.Addr(), "srvr", time.Second)
	return strings.Contains(answer, "Mode: leader\n")
}

// tell posts a request to a member of etcd.
func tell(m *servertest.Database, path string, request, reply any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if request == nil {
		text = []byte("{}")
	}
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	r, err := client.Post("http://"+m.Addr()+"/v3/"+path, "application/json", bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err = io.ReadAll(r.Body)
	switch {
	case err != nil:
		return err
	case r.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %s", path, r.Status, text)
	case reply == nil:
		return nil
	}
	return json.Unmarshal(text, reply)
}

// victims draws the members that have a fault: the leader, another one, all but the
// leader, or all of them.
func (e *ensemble) victims(rng *rand.Rand) (who string, some []*servertest.Database) {
	var others []*servertest.Database
	var leader *servertest.Database
	for _, i := range rng.Perm(len(e.members)) {
		if m := e.members[i]; leader == nil && e.leads(m) {
			leader = m
		} else {
			others = append(others, m)
		}
	}
	switch n := rng.IntN(8); {
	case n == 0:
		return "all members", e.members
	case n == 1 && leader != nil:
		return "all members but the leader", others
	case n <= 3 || leader == nil:
		return "a member", others[:1]
	}
	return "the leader", []*servertest.Database{leader}
}

// strike plans to do something to some members, and to undo it.
func (e *ensemble) strike(w *nemesis, rng *rand.Rand, how string, do, undo func(*servertest.Database) error) strike {
	var some []*servertest.Database
	return strike{detail: how, lasts: between(rng, 100*time.Millisecond, 2*w.bounds.MaxTTL), quarantine: toWorkIn,
		apply: func(f *Fault) error {
			var who string
			who, some = e.victims(rng)
			f.Detail = how + ": " + who
			return servertest.Together(some, do)
		},
		heal: func(*Fault) error { return servertest.Together(some, undo) }}
}

func (e *ensemble) kill(w *nemesis, rng *rand.Rand) strike {
	return e.strike(w, rng, "is killed, and comes back with its data",
		func(m *servertest.Database) error { m.Kill(); return nil },
		func(m *servertest.Database) error { return again(m.Start) })
}

func (e *ensemble) freeze(w *nemesis, rng *rand.Rand) strike {
	return e.strike(w, rng, "is frozen", (*servertest.Database).Freeze, (*servertest.Database).Thaw)
}

// fill stops a cluster of etcd from writing, as if its database had reached its
// quota.
func (e *ensemble) fill(rng *rand.Rand) strike {
	alarm := func(action string) func(*Fault) error {
		return func(*Fault) error {
			return again(func() error {
				return tell(e.members[0], "maintenance/alarm", map[string]string{"action": action, "memberID": "1", "alarm": "NOSPACE"}, nil)
			})
		}
	}
	return strike{detail: "its database is full", lasts: between(rng, 300*time.Millisecond, 2*time.Second), apply: alarm("ACTIVATE"), heal: alarm("DEACTIVATE")}
}

// compact makes a cluster of etcd forget all former revisions, and each member
// defragment its file, during which it answers nobody.
func compact(w *nemesis, n *node, rng *rand.Rand) strike {
	e := n.current().(*ensemble)
	return strike{detail: "is compacted and defragmented", apply: func(*Fault) error {
		return again(func() error {
			var now struct{ Header struct{ Revision string } }
			if err := tell(e.members[0], "kv/range", map[string]string{"key": "AA=="}, &now); err != nil {
				return err
			}
			err := tell(e.members[0], "kv/compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil)
			if err != nil && !strings.Contains(err.Error(), "has been compacted") {
				return err
			}
			for _, m := range e.members {
				if err := tell(m, "maintenance/defragment", nil, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}}
}

// expire cuts one client off from all members until its session has expired.
func expire(w *nemesis, n *node, rng *rand.Rand) strike {
	client := rng.IntN(len(n.links) / membersOfEach)
	set := func(x servertest.Weather) func(*Fault) error {
		return func(*Fault) error {
			for _, link := range n.linksOf(client) {
				link.Set(x)
			}
			return nil
		}
	}
	lost := servertest.Direction{Lost: true}
	return strike{detail: fmt.Sprintf("the session of client %d expires", client+1), lasts: session + between(rng, time.Second, 3*time.Second),
		apply: set(servertest.Weather{Requests: lost, Replies: lost}), heal: set(servertest.Weather{})}
}
