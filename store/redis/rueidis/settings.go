package rueidis

import (
	"context"
	"maps"
)

// Settings asks CONFIG GET, which takes one name alone before Redis 7.
func (d *driver) Settings(ctx context.Context, names ...string) (map[string]string, error) {
	client, err := d.get(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, name := range names {
		some, err := client.Do(ctx, client.B().ConfigGet().Parameter(name).Build()).AsStrMap()
		if err != nil {
			return nil, wrap(err)
		}
		maps.Copy(all, some)
	}
	return all, nil
}
