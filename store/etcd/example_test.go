package etcd_test

import (
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/etcd"
)

// Locks in an etcd cluster of three members.
func ExampleOpen() {
	node, err := etcd.Open("etcd://a+b+c/locks", nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// Locks over a client that the program has.
func ExampleFrom() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"a:2379", "b:2379", "c:2379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	node, err := etcd.From(client, &etcd.Options{Prefix: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New([]redlatch.Node{node}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
