// Command redlatch-torture breaks a quorum of real servers on purpose, and checks
// whether the locks of redlatch hold. It is a command of its own, so that what it
// needs is not part of the command redlatch.
package main

import "os"

func main() {
	args := os.Args[1:]
	if isClient(args) {
		os.Exit(runClient())
	}
	execute(args).leave()
}
