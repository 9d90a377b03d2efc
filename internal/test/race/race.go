//go:build race

// Package race knows whether a test was built with the race detector.
package race

// Enabled says that the race detector is on.
const Enabled = true
