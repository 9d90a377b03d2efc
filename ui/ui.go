package ui

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/optional"
)

// Options are the settings of a UI. The zero value works.
type Options struct {
	// Title is shown at the top of the page. Defaults to "redlatch".
	Title string

	// Interval is the time between two surveys of the nodes while somebody
	// watches, from 100 ms to 1 h. Surveys that take longer than a quarter of
	// it are made less often. Defaults to 1 s.
	Interval time.Duration

	// MaxViewers is how many may watch at a time, from 1 to 10,000. Others see
	// the page, and that it does not follow. Defaults to 64.
	MaxViewers int

	// Hosts are the host names under which the page is served, without a port.
	// Requests for others are refused. Defaults to none: all are served.
	Hosts []string

	// BreakFlags are put into the command that breaks a lock, such as --nodes
	// and the addresses. They are shown to all viewers. Defaults to none: then
	// the command uses the settings of the user who runs it.
	BreakFlags []string
}

// withDefaults returns o with every unset field set, or an error for the first
// field that is not valid.
func (o Options) withDefaults() (Options, error) {
	o.Title, o.Interval, o.MaxViewers = cmp.Or(o.Title, "redlatch"), cmp.Or(o.Interval, time.Second), cmp.Or(o.MaxViewers, 64)
	switch {
	case o.Interval < 100*time.Millisecond || o.Interval > time.Hour:
		return o, &redlatch.ConfigError{Field: "Interval", Value: o.Interval, Bound: "between 100ms and 1h"}
	case o.MaxViewers < 1 || o.MaxViewers > 10000:
		return o, &redlatch.ConfigError{Field: "MaxViewers", Value: o.MaxViewers, Bound: "between 1 and 10000"}
	}
	for _, h := range o.Hosts {
		if hostOf(h) != h || h == "" {
			return o, &redlatch.ConfigError{Field: "Hosts", Value: h, Bound: "a host name in lower case, or an IP address, without a port"}
		}
	}
	return o, nil
}

// UI is the page, as an http.Handler. It is safe for use by many goroutines.
type UI struct {
	opts   Options
	source *source
}

// kinds are the types of the files that the pages load, by their paths.
var kinds = map[string]string{
	"/style.css": "text/css; charset=utf-8",
	"/page.js":   "text/javascript; charset=utf-8",
	"/icon.svg":  "image/svg+xml",
}

// New returns the page of a client's nodes. Close it before the client.
func New(client *redlatch.Client, opts *Options) (*UI, error) {
	if client == nil {
		return nil, &redlatch.ConfigError{Field: "client", Value: nil, Bound: "a client"}
	}
	o, err := optional.Value(opts).withDefaults()
	if err != nil {
		return nil, err
	}
	s := &source{admin: admin.New(client), interval: o.Interval, most: o.MaxViewers, viewers: map[*viewer]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return &UI{opts: o, source: s}, nil
}

// Close ends all that watch, and waits for the requests to the nodes. It leaves
// the client open. It can be called again.
func (u *UI) Close() error {
	u.source.close()
	return nil
}

// ServeHTTP serves the page: "/" is the list, "/lock?name=NAME" one lock, and
// "/events" what changes. If it is mounted under a path, strip that path, and
// keep the slash at the end.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if !u.admit(w, r) {
		return
	}
	switch kind, ok := kinds[r.URL.Path]; {
	case ok:
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, asset(r.URL.Path[1:]))
	case r.URL.Path == "/", r.URL.Path == "":
		u.serveList(w, r)
	case r.URL.Path == "/lock":
		u.serveLock(w, r)
	case r.URL.Path == "/events":
		u.serveEvents(w, r)
	default:
		refuse(w, http.StatusNotFound, "there is no such page")
	}
}

const (
	// firstPatience is how long a page waits for the first survey, and
	// patience how long for a newer one than the last.
	firstPatience = 10 * time.Second
	patience      = 3 * time.Second
)

// snapshot returns what is known, and asks the nodes if it is old. Its time is
// zero if nothing is known yet.
func (u *UI) snapshot(ctx context.Context) *snapshot {
	ctx, cancel := context.WithTimeout(ctx, firstPatience)
	defer cancel()
	soon, stop := context.WithTimeout(ctx, patience)
	defer stop()
	s := u.source.fresh(soon, u.opts.Interval)
	if s == nil {
		s = u.source.fresh(ctx, u.opts.Interval)
	}
	if s == nil {
		s = u.source.newSnapshot(&admin.Pulse{})
	}
	return s
}

func (u *UI) serveList(w http.ResponseWriter, r *http.Request) {
	v := viewOf(r.URL.Query())
	v.lock = ""
	s := u.snapshot(r.Context())
	write(w, http.StatusOK, "list.html", listParts(s, v, watch{now: time.Now()}), u.listFixed(s, v))
}

func (u *UI) serveLock(w http.ResponseWriter, r *http.Request) {
	v := viewOf(r.URL.Query())
	if v.lock == "" {
		refuse(w, http.StatusBadRequest, "the name of the lock is missing: lock?name=NAME")
		return
	}
	s := u.snapshot(r.Context())
	d := s.detail(v.lock)
	status := http.StatusOK
	if d.state == nil {
		status = http.StatusBadRequest // it cannot be the name of a lock, or the nodes refuse
	}
	write(w, status, "lock.html", oneParts(s, d, v, u.opts.BreakFlags, watch{now: time.Now()}), u.oneFixed(s, v))
}

// write writes a page: the parts that change, and what else has a slot in it.
func write(w http.ResponseWriter, status int, name string, p *parts, fixed map[string]markup) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	io.WriteString(w, string(slots(asset(name), func(name string) markup {
		if list, ok := p.lists[name]; ok {
			return list.all()
		}
		if m, ok := p.texts[name]; ok {
			return m
		}
		m, ok := fixed[name]
		if !ok {
			panic("ui: no slot " + name)
		}
		return m
	})))
}

// asset returns a file that is part of the program.
func asset(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err)
	}
	return string(data)
}
