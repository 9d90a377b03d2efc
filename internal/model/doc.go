// Package model is the round with tokens, restarts and quarantine as a small
// state machine, and a search through all that can happen to it.
//
// A state holds a few clients that want one lock, a few nodes, and the messages
// between them. A step is one thing that happens: a request is sent, or carried
// out, an answer is lost, time goes on by a tick, a node restarts without its
// data. Next lists every step that is possible; Explore takes them all, and
// finds the shortest way to a state that must not be.
//
// Rules has a switch for each rule of the design. Its zero value is the design,
// which must hold; each switch makes a sibling that lacks one rule, and that the
// search must find broken. A search which finds nothing wrong with a sibling
// would find nothing wrong with the design either.
//
// Times are kept relative to now, so that two states that differ only in when
// they happen are one, and time needs no bound. docs/testing/model.md says what is left
// out, and why.
package model
