package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
)

// Other is the label of names beyond the limit, and of those whose label is
// empty.
const Other = "(other)"

// The number of labels.
const (
	DefaultLabels = 100
	mostLabels    = 10_000
)

// Labels finds the entry of a name. It makes at most so many entries, and one
// for all other names.
type Labels[T any] struct {
	label func(string) string
	limit int
	data  func(label string) T

	mu      sync.Mutex
	entries map[string]*Entry[T] // that of Other does not count
}

// Entry is what is known about the names with one label.
type Entry[T any] struct {
	Label   string
	Data    T // what an observer needs for the label
	Waiting Set
	Held    Set
}

// NewLabels returns labels as label makes them, at most limit. 0 and nil mean
// the defaults. data is called once for every new label.
func NewLabels[T any](label func(string) string, limit int, data func(label string) T) (*Labels[T], error) {
	if label == nil {
		label = observe.NamePattern
	}
	limit = cmp.Or(limit, DefaultLabels)
	if limit < 1 || limit > mostLabels {
		return nil, &redlatch.ConfigError{Field: "MaxLabels", Value: limit, Bound: fmt.Sprintf("between 1 and %d", mostLabels)}
	}
	return &Labels[T]{label: label, limit: limit, data: data, entries: map[string]*Entry[T]{}}, nil
}

// Of returns the entry of a name.
func (l *Labels[T]) Of(name string) *Entry[T] {
	label := strings.ToValidUTF8(l.label(name), "\uFFFD")
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limit
	if l.entries[Other] != nil {
		limit++
	}
	if l.entries[label] == nil && (label == "" || len(l.entries) >= limit) {
		label = Other
	}
	e := l.entries[label]
	if e == nil {
		e = &Entry[T]{Label: label, Data: l.data(label)}
		l.entries[label] = e
	}
	return e
}

// All returns all entries.
func (l *Labels[T]) All() []*Entry[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.entries))
}
