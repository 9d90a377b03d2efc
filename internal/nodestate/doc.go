// Package nodestate is what one node stores, as a plain value: without a clock,
// a mutex, a goroutine or a listener.
//
// An Entry is all that a node knows of one name. A Server is the entries of all
// names, the marker of the restart guard, and which server it is. Apply is
// handed the time and a request, changes the value, and returns the reply and
// the notifications that have to be delivered. Clone returns a copy that shares
// nothing with the original, so that states can be kept, compared, and continued
// in several ways.
//
// Package memory puts a mutex, a clock and listeners around a Server. The
// simulation runs on Servers too, and TestModelAnswersAsARealServer there
// compares them with a real Redis server.
package nodestate
