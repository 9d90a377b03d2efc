// Command redlatch takes distributed locks for the shell: on Redis servers, or
// with no server at all in a file of this machine.
package main

import "os"

func main() {
	args := os.Args[1:]
	switch {
	case isGuardian(args):
		os.Exit(runGuardian(args))
	case isGate(args):
		os.Exit(runGate(args))
	case isTortureClient(args):
		os.Exit(runTortureClient())
	}
	execute(args).leave()
}
