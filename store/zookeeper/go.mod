module github.com/redlatch/redlatch/store/zookeeper

go 1.26.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/redlatch/redlatch v0.1.0
)
