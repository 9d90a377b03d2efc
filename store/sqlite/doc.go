// Package sqlite keeps locks in a file on this machine. The redlatch command
// uses it when no servers are configured.
//
// # Basics
//
//	path, err := sqlite.DefaultPath()
//	node, err := sqlite.Open(path, nil)
//	locks, err := redlatch.New([]redlatch.Node{node}, nil)
//
// All processes of the machine that open the same file contend for the same
// locks, also through symbolic links and in containers that mount its folder. The
// file is an SQLite database. There is no server, and nothing to start or stop. A
// process that is killed at any moment leaves the file intact, and its locks
// expire.
//
// A node in a file promises two things beyond what every node promises:
//
//  1. Setting the wall clock does not change when a lock expires, if the system
//     has a clock that runs since boot, and an id for each boot (Linux). A reboot
//     ends every lock: its holder is dead.
//  2. Tokens never go back while the file exists, whatever the clock shows and
//     however long ago a name was last used.
//
// # Caveats
//
// The file must be on a disk of this machine. Network file systems do not
// support the locks and the shared memory that SQLite needs, and a process on
// another machine is not excluded. Neither is a process in a time namespace
// that shifts the boot clock.
//
// Another machine that opens the file, over a disk that both share, looks like a
// reboot: every lock ends, and the processes of this machine get errors from then
// on.
//
// SQLite keeps files of its own beside the file, so it must have one path. A file
// with a hard link is refused (on Unix), and so is a file that is mounted by itself,
// without its folder (on Linux, from 5.8).
//
// Removing or replacing the file while it is in use removes its locks. A
// process that has it open notices this and gets an error, but only at its next
// request. No part of a process may open the file by other means: on Unix,
// closing it again would drop SQLite's own locks on it.
//
// A process that is stopped (SIGSTOP, a debugger) at the very moment at which
// it writes to the file blocks all others until it continues or is killed. They
// get ErrNoQuorum.
//
// After a power failure the last grants may be missing. Their locks are over
// anyway. Later tokens are then higher only because of the wall clock.
//
// A file of another format is refused. Where a release has a new one, stop the
// programs that use the file, upgrade all of them, and remove it.
//
// On systems without the clock of point 1 (all but Linux) locks expire by the
// wall clock: setting it forward ends locks early, and setting it back keeps
// them longer.
package sqlite
