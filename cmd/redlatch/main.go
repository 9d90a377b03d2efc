// Command redlatch takes distributed locks for the shell: on Redis servers, or
// with no server at all in a file of this machine.
package main

import "os"

func main() { os.Exit(execute(os.Args[1:])) }
