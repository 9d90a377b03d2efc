module github.com/redlatch/redlatch/store/redis/goredis

go 1.26.0

require (
	github.com/redis/go-redis/v9 v9.22.0
	github.com/redlatch/redlatch v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/stretchr/testify v1.11.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
