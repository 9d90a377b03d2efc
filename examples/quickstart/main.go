package main

import (
	"context"
	"log"

	"github.com/redlatch/redlatch"
	_ "github.com/redlatch/redlatch/store/sqlite"
)

func main() {
	locks, err := redlatch.Open("sqlite:", nil) // or "redis://10.0.0.1", which needs no import
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
