package replay

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Formats returns the published formats, each as its source has it.
func Formats() []*Format {
	return []*Format{
		{Name: "redlock-rb", Version: "1.2.2", Registry: "RubyGems", Take: setNX, Extend: extendOwnOrFree, Give: giveOwn},
		{Name: "redlock-php", Version: "master", Registry: "Packagist", Take: setNX, Give: giveOwn, Quorum: halfAndOne},
		{Name: "php-redis-lock", Version: "1.0.1", Registry: "Packagist", Take: setNX, Extend: extendOwn, Give: giveOwn, Single: true},
		{Name: "PHPRedisMutex", Version: "2.x", Registry: "Packagist", Prefix: "lock_", Take: setNXSeconds, Give: giveOwn},
		{Name: "redlock-cpp", Version: "master", Take: setNX, Extend: replaceOwnOrFree, NewValue: true, Give: giveOwn},
		{Name: "redlock-cs", Version: "1.0", Registry: "NuGet", Take: setNX, Give: giveOwn},
		{Name: "RedLock.net", Version: "2.x", Registry: "NuGet", Prefix: "redlock:", Take: setNX, Extend: extendOwnOrFree, Give: giveOwn},
		{Name: "ScarletLock", Version: "1.0.0", Registry: "NuGet", Take: setNX, Give: giveOwn},
		{Name: "Redis::DistLock", Version: "0.05", Registry: "CPAN", Take: setNX, Extend: extendAnyones, Give: giveOwn, Leaves: true,
			Breaches: []string{"late extension"}},
		{Name: "redis-objects", Version: "1.x", Registry: "RubyGems", Single: true, open: newTimestampLock,
			Breaches: []string{"excluded", "contention"}},
	}
}

// halfAndOne is half of n and one, not rounded down: of five servers it takes
// four, and of one that one.
func halfAndOne(n int) int { return min(n, (n+1)/2+1) }

// setNXSeconds is SET with NX and EX, a second longer than was asked for.
func setNXSeconds(ctx context.Context, r *goredis.Client, key, value string, ttl time.Duration) (bool, error) {
	return yes(r.Do(ctx, "SET", key, value, "NX", "EX", int(ttl/time.Second)+1).Result())
}

// replaceOwnOrFree deletes the key if the value is ours, and sets a new value
// if there is no key then.
func replaceOwnOrFree(ctx context.Context, r *goredis.Client, key, old, value string, ttl time.Duration) (bool, error) {
	return script(ctx, r, `
		local now = redis.call('GET', KEYS[1])
		if now and now ~= ARGV[1] then return 0 end
		redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
		return 1`, key, old, value, ttl.Milliseconds())
}

// extendAnyones sets the key whoever's it is: it is a SET with XX and, where
// there is no key, one with NX.
func extendAnyones(ctx context.Context, r *goredis.Client, key, old, _ string, ttl time.Duration) (bool, error) {
	return yes(r.Do(ctx, "SET", key, old, "PX", ttl.Milliseconds()).Result())
}
