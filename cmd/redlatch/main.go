// Command redlatch takes distributed locks for the shell: on Redis servers, or
// with no server at all in a file of this machine.
package main

import (
	"os"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

func main() {
	args := os.Args[1:]
	if code, is := supervise.Helper(args); is {
		os.Exit(code)
	}
	execute(args).leave()
}
