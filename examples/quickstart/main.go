package main

import (
	"context"
	"github.com/redlatch/redlatch"
	"log"
)

func main() {
	locks, err := redlatch.Open("redis://127.0.0.1:6379", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Do(context.Background(), "orders/42", nil, func(ctx context.Context, lease *redlatch.Lease) error {
		log.Print("this runs under the lock, with token ", lease.Token())
		return nil
	})
	log.Println("finished, error:", err)
}
