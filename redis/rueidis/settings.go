package rueidis

import "context"

// Settings asks CONFIG GET.
func (d *driver) Settings(ctx context.Context, names ...string) (map[string]string, error) {
	client, err := d.get(ctx)
	if err != nil {
		return nil, err
	}
	all, err := client.Do(ctx, client.B().ConfigGet().Parameter(names...).Build()).AsStrMap()
	return all, wrap(err)
}
