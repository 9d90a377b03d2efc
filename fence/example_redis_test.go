package fence_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/store/redis"
)

// theirs is the client of a program, as rueidis.Driver(client) or
// goredis.Driver(client) returns it.
var theirs redis.Driver

// A value is set only with a token that is not stale.
func ExampleRedis_Set() {
	guard, err := fence.NewRedis(theirs, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	// Tokens come from Lease.Token.
	older, newer := redlatch.Token(1763000000123456), redlatch.Token(1763000009876543)
	fmt.Println(guard.Set(ctx, "config", "new", newer, 0))
	fmt.Println(guard.Set(ctx, "config", "old", older, 0))
	value, err := guard.Get(ctx, "config")
	fmt.Println(value.Text, err)
	// It prints:
	// <nil>
	// redlatch: token 00001763000000123456 is stale: "config" has seen 00001763000009876543
	// new <nil>
}
