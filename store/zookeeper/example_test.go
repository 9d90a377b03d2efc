package zookeeper_test

import (
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/zookeeper"
)

// Locks in a ZooKeeper ensemble of three servers.
func ExampleOpen() {
	node, err := zookeeper.Open("zookeeper://a+b+c/locks", nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// Locks over a connection that the program has.
func ExampleFrom() {
	conn, _, err := zk.Connect([]string{"a:2181", "b:2181", "c:2181"}, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	node, err := zookeeper.From(conn, &zookeeper.Options{Name: "zookeeper://a+b+c/redlatch"})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
