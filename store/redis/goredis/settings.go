package goredis

import (
	"context"
	"maps"
)

// Settings asks CONFIG GET.
func (d *driver) Settings(ctx context.Context, names ...string) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range names {
		some, err := d.ask.client.ConfigGet(ctx, name).Result()
		if err != nil {
			return nil, wrap(err)
		}
		maps.Copy(all, some)
	}
	return all, nil
}
