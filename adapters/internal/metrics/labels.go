package metrics

import (
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

	mu      sync.RWMutex
	entries map[string]*Entry[T]
	other   *Entry[T] // nil if no name has needed it
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
	if limit == 0 {
		limit = DefaultLabels
	}
	if limit < 1 || limit > mostLabels {
		return nil, &redlatch.ConfigError{Field: "MaxLabels", Value: limit, Bound: fmt.Sprintf("between 1 and %d", mostLabels)}
	}
	return &Labels[T]{label: label, limit: limit, data: data, entries: map[string]*Entry[T]{}}, nil
}

// Of returns the entry of a name.
func (l *Labels[T]) Of(name string) *Entry[T] {
	label := strings.ToValidUTF8(l.label(name), "\uFFFD")
	l.mu.RLock()
	e, full := l.entries[label], len(l.entries) >= l.limit
	if e == nil && (full || label == "" || label == Other) {
		e = l.other
	}
	l.mu.RUnlock()
	if e != nil {
		return e
	}
	return l.add(label)
}

// add returns the entry of a label that has none, and makes it.
func (l *Labels[T]) add(label string) *Entry[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[label]; e != nil {
		return e // another caller was faster
	}
	if label == "" || label == Other || len(l.entries) >= l.limit {
		if l.other == nil {
			l.other = &Entry[T]{Label: Other, Data: l.data(Other)}
		}
		return l.other
	}
	e := &Entry[T]{Label: label, Data: l.data(label)}
	l.entries[label] = e
	return e
}

// All returns all entries.
func (l *Labels[T]) All() []*Entry[T] {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := slices.AppendSeq(make([]*Entry[T], 0, len(l.entries)+1), maps.Values(l.entries))
	if l.other != nil {
		all = append(all, l.other)
	}
	return all
}
