// Package sqlite keeps locks in a file of this machine: what redlatch uses
// when it is given no servers.
//
// # Basics
//
//	path, err := sqlite.DefaultPath()
//	node, err := sqlite.Open(path)
//	locks, err := redlatch.New([]redlatch.Node{node}, redlatch.Options{})
//
// Every process of the machine that opens the same file contends for the same
// locks, by whichever path it reaches it. The file is an SQLite database;
// there is no server, and nothing to start or stop. A process that is killed,
// at whatever moment, leaves the file whole, and its locks run out.
//
// What a node in a file adds to what every node promises:
//
//  1. Setting the wall clock moves no expiry, where the system has a clock
//     that runs since it booted and tells the boots apart (Linux). A reboot
//     ends every lock: whoever held one is dead.
//  2. Tokens never go back as long as the file is there, whatever becomes of
//     the clock and however long ago a name was last used.
//
// # Caveats
//
// The file must be on a disk of this machine. Network file systems do not
// keep the locks and the shared memory that SQLite needs, and a process on
// another machine is not excluded. Nor is one in a time namespace of its own,
// if that shifts the boot clock.
//
// Removing or replacing the file while it is in use takes the locks with it.
// A process that had it open notices and gets an error, but only when it next
// asks for something. Nor may any part of a process open the file by other
// means: on Unix, closing it again would drop SQLite's own locks on it.
//
// A process that is stopped (SIGSTOP, a debugger) in the very moment in which it
// writes to the file holds up everybody else until it goes on or is killed: they
// get ErrNoQuorum.
//
// After a power failure the last grants may be missing. Their locks are over
// anyhow; their tokens are then outdone only by the wall clock.
//
// Where there is no such clock as in 1 (everywhere but on Linux) expiry goes
// by the wall clock: setting it forward ends locks early, setting it back
// keeps them.
package sqlite
