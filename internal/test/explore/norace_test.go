//go:build !race

package explore

// raced says that the tests were built with the race detector.
const raced = false
