// Package nodestate is the state of one node as a plain value: without a clock,
// a mutex, a goroutine or a listener.
//
// An Entry is all that a node knows about one name. A Server is the entries of
// all names, the marker of the restart guard, and the server's identity. Apply
// gets the time and a request, changes the value, and returns the reply and the
// notifications to deliver. Clone returns a copy that shares nothing with the
// original, so that states can be kept, compared, and continued in several
// ways.
//
// Package memory adds a mutex, a clock and listeners to a Server, and the simulation
// runs on Servers too. Package casnode applies requests to one Entry at a time. TestModelAnswersAsARealServer compares them
// with real stores.
package nodestate
