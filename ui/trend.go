package ui

import (
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/admin"
)

const (
	trendStep  = 10 * time.Second
	trendSteps = 60
)

// moment is what the surveys of ten seconds found.
type moment struct {
	step           int64 // how many steps after 1970
	waiting        int   // the most waiters at a time; -1 if that is not known
	away           int   // the most nodes out of service at a time
	acquired, lost int   // how often a lock was acquired; and expired, broken or forgotten
}

// measure adds a survey and its events to the trend.
func (h *history) measure(s *snapshot, found []event) {
	_, _, waiting := s.counts()
	now := moment{step: s.at.UnixNano() / int64(trendStep), waiting: waiting, away: len(s.nodes) - serving(s.nodes)}
	if s.err != nil {
		now.waiting = -1
	}
	kinds := map[kind]int{}
	for _, e := range found {
		kinds[e.kind]++
	}
	now.acquired, now.lost = kinds[kindHeld], kinds[kindExpired]+kinds[kindBroken]+kinds[kindForgot]
	old := func(m moment) bool { return m.step > now.step || m.step <= now.step-trendSteps }
	all := slices.DeleteFunc(slices.Clone(h.trend), old) // snapshots have the former one
	if n := len(all); n > 0 {
		if last := all[n-1]; last.step == now.step {
			now.waiting, now.away = max(now.waiting, last.waiting), max(now.away, last.away)
			now.acquired, now.lost = now.acquired+last.acquired, now.lost+last.lost
			all = all[:n-1]
		}
	}
	h.trend = append(all, now)
}

// counts returns how many locks are held, how many are contended, and how many wait.
func (s *snapshot) counts() (held, contended, waiting int) {
	for i := range s.locks {
		l := &s.locks[i]
		waiting += l.waiting
		if l.waiting > 0 {
			contended++
		}
		if l.state == admin.StateHeld {
			held++
		}
	}
	return held, contended, waiting
}

// trendText draws the trend.
func (s *snapshot) trendText() markup {
	var most, sum moment
	for _, m := range s.trend {
		most.waiting, most.away, most.acquired = max(most.waiting, m.waiting), max(most.away, m.away), max(most.acquired, m.acquired+m.lost)
		sum.acquired, sum.lost = sum.acquired+m.acquired, sum.lost+m.lost
	}
	tolerated := len(s.nodes) - s.need()
	return when(len(s.trend) > 0, join(
		s.chart("Waiters", fmt.Sprintf("at most %d", most.waiting), most.waiting,
			bars{"link", func(m moment) int { return m.waiting }}),
		s.chart("Acquired and lost", fmt.Sprintf("%d and %d", sum.acquired, sum.lost), most.acquired,
			bars{"link", func(m moment) int { return m.acquired + m.lost }}, bars{"danger", func(m moment) int { return m.lost }}),
		s.chart("Nodes out of service", fmt.Sprintf("at most %d", most.away), len(s.nodes),
			bars{"danger", func(m moment) int { return m.away }}, bars{"warning", func(m moment) int { return min(m.away, tolerated) }})))
}

// bars are as high as of says, where that is above 0.
type bars struct {
	class markup
	of    func(m moment) int
}

// chart draws bars for each step, up to top, the last at the right, on a ground where
// the first are known: 0 or more.
func (s *snapshot) chart(label, says string, top int, all ...bars) markup {
	top = max(top, 1)
	first := all[0].of
	all = append([]bars{{"known", func(m moment) int { return min(first(m)+1, 1) * top }}}, all...)
	var drawn markup
	for _, b := range all {
		var d markup
		for _, m := range s.trend {
			if v := b.of(m); v > 0 {
				d = join(d, fill("M% %v-%h1v%z", trendSteps-1+m.step-s.trend[len(s.trend)-1].step, top, v, v))
			}
		}
		drawn = join(drawn, fill(`<path class="%" d="%"/>`, b.class, d))
	}
	return fill(`<figure><figcaption>% <small>%</small></figcaption><svg viewBox="0 0 % %" preserveAspectRatio="none" role="img" aria-label="% in the last 10 minutes: %">%</svg></figure>`,
		label, says, trendSteps, top, label, says, drawn)
}
