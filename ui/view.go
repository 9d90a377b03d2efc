package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	// pageSize is how many locks one page has.
	pageSize = 100
	// maxListed is how many holders of a lock the list names.
	maxListed = 3
	// maxQuery is the longest search, in bytes. No name is longer.
	maxQuery = 512
)

// view is what somebody looks at: a page of the list, or one lock.
type view struct {
	lock string // the name of one lock; empty for the list
	q    string
	sort order
	page int // from 1
}

// order is how the list is sorted.
type order string

// The orders of the list.
const (
	byName    order = ""
	byWaiting order = "waiting" // most waiters first
	byAge     order = "since"   // held longest first
)

// viewOf returns what a query asks for. What is not valid is ignored: a link
// that was cut still shows a page.
func viewOf(query url.Values) view {
	v := view{page: 1}
	if name := query.Get("name"); name != "" {
		v.lock = name
		return v
	}
	v.q = strings.TrimSpace(query.Get("q"))
	if len(v.q) > maxQuery {
		v.q = strings.ToValidUTF8(v.q[:maxQuery], "")
	}
	if n, err := strconv.Atoi(query.Get("page")); err == nil && n > 1 {
		v.page = n
	}
	if o := order(query.Get("sort")); o == byWaiting || o == byAge {
		v.sort = o
	}
	return v
}

// query returns the query of a view.
func (v view) query() string {
	values := url.Values{}
	if v.lock != "" {
		values.Set("name", v.lock)
	}
	if v.q != "" {
		values.Set("q", v.q)
	}
	if v.sort != byName {
		values.Set("sort", string(v.sort))
	}
	if v.page > 1 {
		values.Set("page", strconv.Itoa(v.page))
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// link returns the relative address of a view's page.
func (v view) link() string {
	if v.lock != "" {
		return "lock" + v.query()
	}
	return "./" + v.query()
}

// listing is a page of the list.
type listing struct {
	locks   []*lock
	matches int
	page    int // the one that is shown: the last one, if the view's is beyond it
	pages   int
	first   int // the number of its first lock, from 1
}

// pick returns the locks that a view shows.
func (s *snapshot) pick(v view) listing {
	needle := strings.ToLower(v.q)
	found := make([]*lock, 0, len(s.locks))
	for i := range s.locks {
		if l := &s.locks[i]; needle == "" || strings.Contains(l.folded, needle) {
			found = append(found, l)
		}
	}
	switch v.sort { // within it by name, as they are
	case byWaiting:
		slices.SortStableFunc(found, func(a, b *lock) int { return b.waiting - a.waiting })
	case byAge:
		slices.SortStableFunc(found, func(a, b *lock) int { return cmp.Compare(a.begun(), b.begun()) })
	}
	p := listing{matches: len(found), pages: max(1, (len(found)+pageSize-1)/pageSize)}
	p.page = min(v.page, p.pages)
	start := (p.page - 1) * pageSize
	p.first = start + 1
	p.locks = found[start:min(start+pageSize, len(found))]
	return p
}

// begun is when the first holder got a lock, for sorting: those of which it is
// not known come last.
func (l *lock) begun() int64 {
	if len(l.holders) == 0 || l.holders[0].Since.IsZero() {
		return 1<<63 - 1
	}
	return l.holders[0].Since.UnixMicro()
}
