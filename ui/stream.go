package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// slowest is how long a viewer may take to receive a message. It is dropped
	// then, and may come again.
	slowest = 10 * time.Second
	// heartbeat is how often something is sent where nothing has changed, so
	// that a viewer that is gone is noticed, and a server that is gone by its
	// viewers: a page that hears nothing for three of them is not live.
	heartbeat = 5 * time.Second
)

// serveEvents sends a viewer what it looks at, and then what changes, as
// server-sent events.
func (u *UI) serveEvents(w http.ResponseWriter, r *http.Request) {
	me, err := u.source.join()
	if err != nil {
		w.Header().Set("Retry-After", "10")
		text := err.Error()
		if errors.Is(err, errFull) {
			text = fmt.Sprintf("%d are watching, and no more may", u.opts.MaxViewers)
		}
		refuse(w, http.StatusServiceUnavailable, text)
		return
	}
	defer u.source.leave(me)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not keep it back
	if r.Method == http.MethodHead {
		return
	}
	to := stream{w: w, control: http.NewResponseController(w)}
	if to.send("retry: 2000\n\n") != nil {
		return
	}
	u.follow(r, me, &to)
}

// follow sends what changes until the viewer leaves, is too slow, or the page
// is closed.
func (u *UI) follow(r *http.Request, me *viewer, to *stream) {
	v, sent := viewOf(r.URL.Query()), &parts{}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	snap := u.snapshot(r.Context())
	for {
		if snap != nil && !snap.at.IsZero() {
			now := u.parts(snap, v)
			if m := diff(sent, now, time.Now()); m != nil {
				if sent.texts != nil { // not what happened before it came
					m.Say = announcement(snap, v, sent.seq)
				}
				if to.message(m) != nil {
					return
				}
			}
			sent = now
		}
		select {
		case snap = <-me.news:
		case <-beat.C:
			if to.send("event: beat\ndata:\n\n") != nil {
				return
			}
			snap = nil
		case <-r.Context().Done():
			return
		case <-u.source.ctx.Done():
			return
		}
	}
}

// stream is the connection to one viewer.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// message sends a message.
func (s *stream) message(m *message) error {
	text, err := json.Marshal(m) // on one line
	if err != nil {
		return err
	}
	return s.send("data: " + string(text) + "\n\n")
}

// send sends a text within the time that a viewer has. A server that cannot set
// a limit has its own.
func (s *stream) send(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(slowest)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
