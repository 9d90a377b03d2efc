package redsync

import (
	"os"
	"strings"

	pools "github.com/go-redsync/redsync/v4/redis"
	pool9 "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	poolrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	goredis9 "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

// Clients open pools over the clients that this package is tested with.
var Clients = map[string]func(addr string) (pool pools.Pool, closeIt func()){
	"goredis": func(addr string) (pools.Pool, func()) {
		client := goredis9.NewClient(&goredis9.Options{Addr: addr})
		return pool9.NewPool(client), func() { client.Close() }
	},
	"rueidis": func(addr string) (pools.Pool, func()) {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
		if err != nil {
			panic(err)
		}
		return poolrueidis.NewPool(rueidiscompat.NewAdapter(client)), client.Close
	},
}

type testCase struct {
	poolCount int
	pools     []pools.Pool
}

// makeCases returns what redsync's own tests run on: pools over each client, of servers
// that are in the environment under its name.
//
//lint:ignore U1000 redsync's tests call it
func makeCases(n int) map[string]*testCase {
	all := map[string]*testCase{}
	for client, open := range Clients {
		all[client] = &testCase{poolCount: n}
		for _, addr := range strings.Fields(os.Getenv(client))[:n] {
			pool, _ := open(addr)
			all[client].pools = append(all[client].pools, pool)
		}
	}
	return all
}
