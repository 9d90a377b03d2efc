// Package sentinels asks the sentinels of a master what they know of it.
package sentinels

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// limit is how long a sentinel may take to answer.
const limit = 3 * time.Second

// Replicas returns how many replicas the sentinels list for a master, those that
// are down included: the highest number that one of them names. ask returns the
// reply of one sentinel to SENTINEL MASTER. The error says that none answered.
func Replicas(ctx context.Context, hosts []string, ask func(ctx context.Context, host string) (map[string]string, error)) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var (
		numbers = make([]int, len(hosts))
		errs    = make([]error, len(hosts))
		all     sync.WaitGroup
	)
	for i, host := range hosts {
		all.Go(func() {
			state, err := ask(ctx, host)
			if err == nil {
				numbers[i], err = strconv.Atoi(state["num-slaves"])
			}
			if err != nil {
				errs[i] = fmt.Errorf("sentinel %s: %w", host, err)
			}
		})
	}
	all.Wait()
	most, answered := 0, false
	for i, n := range numbers {
		if errs[i] == nil {
			most, answered = max(most, n), true
		}
	}
	if !answered {
		return 0, errors.Join(errs...)
	}
	return most, nil
}
