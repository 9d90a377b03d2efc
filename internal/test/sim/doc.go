// Package sim looks for schedules that break redlatch's promises. It runs the
// real client on models of servers, in virtual time, from one seed. Messages
// are late, lost and repeated; connections break; servers crash and restart
// with all, some or none of their data; clocks are wrong, run at other rates
// and are set; clients are paused and die.
//
// Names have writers, readers, writers that become readers, and slots.
//
// Checked at every step: no two leases that exclude each other are valid at
// once; tokens grow in the order of acquisition, so that a resource which compares
// tokens refuses stale holders and no valid one; a lease ends no later than its
// time to live allows, and reports that; no extension creates a lock; no release
// frees another's lock.
// Checked at the end: nothing is left behind, and every caller was served.
//
// The fate of a message follows from the seed and from the message, not from
// the order in which goroutines run. No two deliveries happen at the same
// moment: after each the world comes to rest before the next. So a seed gives
// the same history each time. The exception is what several goroutines of one
// client do at exactly the same moment.
//
// The tests are the command: make sim runs millions of seeds, and
// TestEveryMutantIsFoundOut shows that the simulation finds broken rules.
package sim
