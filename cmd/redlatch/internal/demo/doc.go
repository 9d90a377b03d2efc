// Package demo shows what redlatch protects from, on this machine alone: a
// contended lock, a holder that is stopped for longer than its lease, and nodes
// that die.
//
//	          this process                   processes of their own
//	┌──────────────────────────────┐     ┌────────────────────────────┐
//	│ story: starts, stops, kills  │────▶│ nodes: package memory      │
//	│        prints what they say  │◀────│        behind gob over TCP │
//	│                              │     └────────────▲───────────────┘
//	│ account: a balance, by HTTP, │     ┌────────────┴───────────────┐
//	│          behind a fence      │◀────│ clients: package redlatch  │
//	└──────────────────────────────┘     └────────────────────────────┘
//
// Nothing is prepared. A process says what it is about to do, or what came of
// it, and goes on when the story has printed that. So lines are in the order in
// which things happened, at a pace that can be read.
package demo
