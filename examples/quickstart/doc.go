// Quickstart runs one piece of work under a lock: of all copies of this
// program, on all machines, one does the work at a time.
package main
