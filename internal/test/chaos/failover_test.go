//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestFailoverLacksTheLastWrites has a server be written to until it is gone.
func TestFailoverLacksTheLastWrites(t *testing.T) {
	families, err := Choose("failover")
	check.Must(t, err)
	for _, kind := range []ServerKind{Redis, Postgres, MariaDB, MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Family{}, kind)
			old, begun, written := b.n.current(), make(chan bool), make(chan int)
			go func() {
				n := 0
				for write(old, n+1) == nil {
					if n++; n == 1 {
						close(begun)
					}
					time.Sleep(time.Millisecond) // so that the replica can follow
				}
				written <- n
			}()
			<-begun
			b.does(families[0].draw(b.w, rand.New(rand.NewPCG(1, 1))).apply)
			if has, wrote := writes(t, b.n.current()), <-written; has == 0 || has >= wrote {
				t.Errorf("of %d writes %d are there", wrote, has)
			}
			check.Must(t, write(b.n.current(), 0)) // it is no replica any more
			if kind == Redis {
				b.says("way PING = PONG") // the client's way leads there
			}
			b.state("S") // it was stopped, and goes on
		})
	}
}

// write writes a number, and writes counts what is there.
func write(s server, n int) error {
	if r, ok := s.(redisServer); ok {
		return r.order("SET", fmt.Sprint("n", n), "v")
	}
	return execute(s.(*servertest.Database), "CREATE TABLE IF NOT EXISTS written (n BIGINT NOT NULL)", fmt.Sprintf("INSERT INTO written VALUES (%d)", n))
}

func writes(t *testing.T, s server) int {
	if r, ok := s.(redisServer); ok {
		keys, err := r.Ask("KEYS", "n*")
		check.Must(t, err)
		return len(strings.Fields(keys))
	}
	text, err := query(s.(*servertest.Database), "SELECT count(*) FROM written")
	check.Must(t, err)
	n, err := strconv.Atoi(text)
	check.Must(t, err)
	return n
}
