package model

// This file is what a node does with a request: the scripts under redis/lua,
// as far as they decide anything.

// Answer is what a node answers.
type Answer uint8

// The answers.
const (
	Granted   Answer = iota
	Refreshed        // it had the key for this very value
	Held
	Stale
	Behind
	Ahead
	Sitting // in quarantine
	Config  // it is marked for another list
	Absent
	Freed
	answers
)

func (a Answer) String() string {
	return [...]string{"granted", "granted again", "held by another", "stale", "behind", "ahead", "in quarantine", "marked for another list", "absent", "freed"}[a]
}

// value is what a key of the claim looks like.
func (m *Model) value(c int, try uint8) uint8 {
	if m.r.SameValue {
		try = 0
	}
	return keyOf(c, try)
}

// listed reports whether the node is marked for the client's list.
func (m *Model) listed(n *Node, c int) bool {
	if !m.b.Former || m.r.AnyList {
		return true
	}
	if c == 0 {
		return n.Marked == MarkedOld
	}
	return n.Marked == MarkedNew || n.Marked == MarkedBar && m.r.BarredAgrees
}

// guard says whether the node may grant. A quarantine may end early by the
// drift of the node's clock.
func (m *Model) guard(n *Node, c int) (Answer, bool) {
	if !m.listed(n, c) {
		return Config, false
	}
	if n.Sits > m.z.drift && !(m.r.CachedMarker && n.Got[c]&gotTrust != 0) {
		return Sitting, false
	}
	if m.r.CachedMarker {
		n.Got[c] |= gotTrust
	}
	return Granted, true
}

func (m *Model) acquire(n *Node, c int, try uint8, t int8) Answer {
	if a, ok := m.guard(n, c); !ok {
		return a
	}
	v := m.value(c, try)
	ours := n.Key == v
	switch {
	case n.Key != 0 && !ours:
		return Held
	case n.Fence != none && (t < n.Fence || t == n.Fence && !ours):
		return Stale
	case !ours && t < n.Skew-m.z.window && !m.r.NoWindow && (n.Fence != none || !m.r.LooseLower):
		return Behind
	case t > n.Skew+m.z.window && !m.r.NoWindow && !m.near(n, t):
		return Ahead
	}
	m.set(n, v, t)
	if ours {
		return Refreshed
	}
	return Granted
}

// near reports whether a token is so little above the fence that the window
// does not matter.
func (m *Model) near(n *Node, t int8) bool {
	return n.Fence != none && t <= n.Fence+m.z.leap && !m.r.NoLeap
}

func (m *Model) set(n *Node, value uint8, t int8) {
	n.Key, n.Left = value, m.b.TTL
	m.raise(n, t)
}

func (m *Model) raise(n *Node, t int8) {
	if !m.r.NoFence {
		n.Fence, n.Kept = t, m.z.retention
	}
}

func (m *Model) extend(n *Node, c int, try uint8, t int8) Answer {
	v := m.value(c, try)
	if n.Key != v {
		switch {
		case n.Key != 0:
			return Held
		case !m.r.ExtendCreates:
			return Absent
		}
		m.set(n, v, max(t, n.Fence))
		return Granted
	}
	if !m.r.ExtendOtherList && !m.listed(n, c) {
		return Config
	}
	if n.Fence != none {
		n.Kept = m.z.retention
	}
	n.Left = m.b.TTL
	return Granted
}

func (m *Model) release(n *Node, c int, try uint8, t int8) Answer {
	if n.Fence < t && (t <= n.Skew+m.z.window || m.near(n, t) || m.r.NoWindow) && !m.r.ReleaseNoFence {
		m.raise(n, t)
	}
	if n.Key == m.value(c, try) || m.r.ReleaseUnchecked {
		n.Key, n.Left = 0, 0
		return Freed
	}
	return Absent
}

func (m *Model) repair(n *Node, c int, try uint8, t int8) Answer {
	if a, ok := m.guard(n, c); !ok && !(m.r.RepairUnguarded && a == Sitting) {
		return a
	}
	v := m.value(c, try)
	switch {
	case n.Key == v:
		return Refreshed
	case n.Key != 0:
		return Held
	case n.Fence == t && !m.r.RepairAtItsFence:
		return Stale
	}
	n.Key, n.Left = v, m.b.TTL
	if n.Fence < t {
		m.raise(n, t)
	}
	return Granted
}

// forget takes away what a node has lost, and has it sit out.
func (m *Model) forget(n *Node, with Disk) {
	n.Key, n.Left, n.Fence, n.Kept = with.Key, with.Left, with.Fence, with.Kept
	if !m.r.BelievedAtOnce {
		n.Sits = m.z.quarantine
	}
}

// age moves a node by one tick.
func (m *Model) age(n *Node) {
	n.Key, n.Left, n.Fence, n.Kept = m.aged(n.Key, n.Left, n.Fence, n.Kept)
	if d := &n.Saved; d.Saved {
		d.Key, d.Left, d.Fence, d.Kept = m.aged(d.Key, d.Left, d.Fence, d.Kept)
	}
	n.Sits = max(n.Sits-1, 0)
}

func (m *Model) aged(key uint8, left, fence, kept int8) (uint8, int8, int8, int8) {
	if left--; left <= 0 {
		key, left = 0, 0
	}
	fence = m.earlier(fence)
	if kept == always {
		return key, left, fence, kept
	}
	if kept--; kept <= 0 {
		fence, kept = none, 0
	}
	return key, left, fence, kept
}

// earlier is a token seen a tick later.
func (m *Model) earlier(t int8) int8 {
	if t == none {
		return none
	}
	return max(t-unit, m.z.low)
}
