package foreign

import (
	"path/filepath"

	"github.com/redlatch/redlatch/test/interop/drive"
)

// InProcess are the clients that need nothing but this program: those in Go.
func InProcess() []*Client {
	return []*Client{
		{Name: "redsync", Source: "Go", Five: true,
			open: func(a []string) (string, drive.Lock) { return drive.Redsync(a) }},
		{Name: "redsync, WithSetNXOnExtend", Source: "Go", Five: true, open: drive.RedsyncSetNX},
		{Name: "bsm/redislock", Source: "Go", open: drive.Redislock},
		{Name: "rueidislock", Source: "Go", Prefix: "rueidislock:0:", Setting: "needs `KeyMajority: 1`", Renews: true, open: drive.Rueidislock},
	}
}

// Installed are the clients that make interop installs into .deps.
func Installed() []*Client {
	return []*Client{
		node("redlock 4", "redlock4", true),
		node("redlock 5", "redlock5", true),
		with(node("redis-semaphore", "redis-semaphore", true), func(c *Client) {
			c.Prefix, c.Renews, c.Setting = "mutex:", true, "`Mutex`, on five `RedlockMutex`"
		}),
		python("redis-py Lock", "redis-py", false),
		python("redlock-py", "redlock-py", true),
		with(python("pottery", "pottery", true), func(c *Client) { c.Prefix = "redlock:" }),
		python("aioredlock", "aioredlock", true),
		with(python("python-redis-lock", "python-redis-lock", false), func(c *Client) { c.Prefix = "lock:" }),
		redisson("Redisson"),
		with(redisson("Redisson, watchdog"), func(c *Client) { c.Renews, c.envs = true, []string{"REDISSON_WATCHDOG=1"} }),
		with(php("Symfony Lock", "symfony", true), func(c *Client) {
			c.Setting = "`RedisStore`, on five in a `CombinedStore` with `ConsensusStrategy`"
		}),
		with(php("Laravel Cache lock", "laravel", false), func(c *Client) { c.Setting = "needs an empty cache prefix" }),
	}
}

// All are all of them.
func All() []*Client { return append(InProcess(), Installed()...) }

func with(c *Client, change func(*Client)) *Client {
	change(c)
	return c
}

func node(name, file string, five bool) *Client {
	return &Client{Name: name, Source: "npm", Five: five, deps: file,
		command: []string{"node", filepath.Join("clients", "node", file+".js")},
		envs:    []string{"NODE_PATH=" + filepath.Join(DepsDir, file, "node_modules")}}
}

func python(name, file string, five bool) *Client {
	return &Client{Name: name, Source: "PyPI", Five: five, deps: file,
		command: []string{filepath.Join(DepsDir, file, "bin", "python"), "-u", filepath.Join("clients", "python", file+".py")}}
}

func redisson(name string) *Client {
	dir := filepath.Join(DepsDir, "redisson")
	return &Client{Name: name, Source: "Maven", Five: true, deps: "redisson", Setting: "on five `RedissonRedLock`",
		command: []string{"java", "-Xmx128m", "-XX:TieredStopAtLevel=1",
			"-cp", filepath.Join(dir, "classes") + ":" + filepath.Join(dir, "lib", "*"), "RedissonDriver"}}
}

func php(name, file string, five bool) *Client {
	return &Client{Name: name, Source: "Debian", Five: five,
		command: []string{"php", filepath.Join("clients", "php", file+".php")}}
}
