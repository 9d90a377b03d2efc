// Package sim looks for schedules that break redlatch's promises. It runs the
// real client on models of servers, in virtual time, from one seed: messages
// are late, lost, repeated; connections break; servers crash and come back with
// all, some or none of their data; clocks are off, run at other rates and are
// set; clients stand still and die.
//
// Checked at every step: no two leases valid at once, tokens that grow in the
// order of acquisition, a lease that ends no later than its time to live allows
// and says so, no extension that creates, no release that frees another's lock.
// Checked at the end: nothing left behind, everybody served.
//
// What happens to a message follows from the seed and from what the message is,
// not from the order in which goroutines run, and no two deliveries happen at
// the same moment: all is quiet after each before the next one comes. So a seed
// gives the same history each time, and a plan from which something was taken
// out is otherwise the same plan: that is how one that breaks a promise is
// shrunk. The exception is what several goroutines of one client do at the very
// same moment.
//
// The tests are the command: make sim runs seeds by the million, and
// TestEveryMutantIsFoundOut shows that it would find what it looks for.
package sim
