module github.com/redlatch/redlatch/store/redis/rueidis

go 1.26.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/redlatch/redlatch v0.1.0
)

require golang.org/x/sys v0.49.0 // indirect
