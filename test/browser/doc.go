// Package browser tests package ui and the playground in a real browser. It is a module of its own,
// so that what drives the browser is no dependency of redlatch.
package browser
