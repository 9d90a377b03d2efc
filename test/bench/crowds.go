package main

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/report"
)

const (
	patient      time.Duration = 0
	crowdColumns               = "rate beside unreleased lost overtaken jain never wait wait-p99 wait-max writes commands client server"

	onRows  = "redlatch-postgres pg-advisory redlatch-mariadb get-lock"
	onRedis = "redlatch redsync-rueidis"
)

// crowd is clients that want one name, each by connections of its own, in turns
// with the native lock.
func crowd(count int, held, deadline time.Duration) measure.Situation {
	s := measure.Situation{Work: measure.Processes, Turns: true, Crowd: true, Count: count, Held: held, Deadline: deadline}
	s.Rounds, s.For = 3, 3*time.Second
	if count >= 200 { // or each has the lock too seldom to tell whether it is fair
		s.Rounds, s.For = 1, 16*time.Second
	}
	s.ID = fmt.Sprintf("crowd/%d/%v/%v", count, held, deadline)
	if deadline == patient {
		s.ID = fmt.Sprintf("crowd/%d/%v/patient", count, held)
	}
	return s
}

// runs is redlatch run at once.
func runs(count int) measure.Situation {
	return measure.Situation{ID: fmt.Sprintf("runs/%d", count), Work: measure.Runs, Count: count}
}

var crowds = report.Page{
	Key: "crowd", File: "../../docs/testing/bench/crowd.md", Title: "Crowds, redlatch beside each store's own lock",
	Programs: append(append(redisServer, databases.Programs...), consensus.Programs...),
	Modules:  append(append([]string{"github.com/redis/rueidis", "github.com/go-redsync/redsync/v4"}, databases.Modules...), consensus.Modules...),
	Text: "Clients in eight processes want one name, each over connections of its own. A second does not count, and then some do. " +
		"Native is the store's own lock in the same run, in turns; on Redis, which has none, redsync over rueidis. " +
		"A caller is overtaken by those who asked later and acquired earlier: the worst case of all that asked while it counts.\n",
	Tables: []report.Table{
		{Heading: "## Deadlines: 40 clients, 20 ms held", Columns: crowdColumns, Nodes: []int{1},
			Contenders: keys(onRedis, onRows, onEtcd, "redlatch-zookeeper"),
			Situations: []measure.Situation{crowd(40, 20*time.Millisecond, 200*time.Millisecond), crowd(40, 20*time.Millisecond, time.Second)},
			Text:       "Each try has a deadline, which is in the id; the next one follows at once. Waits are those of all tries. `zk.Lock` heeds none."},
		{Heading: "## Patient: 200 clients, 5 ms held", Columns: crowdColumns, Nodes: []int{1}, Contenders: keys(onRedis, onRows),
			Situations: []measure.Situation{crowd(200, 5*time.Millisecond, patient)}},
		{Heading: "## Patient: 8, 64 and 200 clients, 1 ms held", Columns: crowdColumns, Nodes: []int{3}, Contenders: keys(onEtcd, onZooKeeper),
			Situations: []measure.Situation{crowd(8, time.Millisecond, patient), crowd(64, time.Millisecond, patient), crowd(200, time.Millisecond, patient)}},
		{Heading: "## `redlatch run`, many at once", Columns: "exit-69 exit-other took", Nodes: []int{1},
			Contenders: "redlatch redlatch-postgres redlatch-mariadb redlatch-etcd redlatch-zookeeper",
			Situations: []measure.Situation{runs(30), runs(100), runs(120)},
			Text:       "As many processes as the id says begin at once, with default flags and on one name, and each runs `true`."},
	},
	End: consensus.End,
}
