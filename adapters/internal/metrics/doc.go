// Package metrics is what the observers of redlatchprom and redlatchotel share:
// a limited number of labels for the names of locks, what is in progress under
// each of them, and what is known about the nodes of several clients.
package metrics
