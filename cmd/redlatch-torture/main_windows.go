package main

import (
	"fmt"
	"os"
)

// main says that torture does not run here: it stops and continues processes,
// which Windows cannot do.
func main() {
	fmt.Fprintln(os.Stderr, "redlatch-torture: torture does not run on Windows; run it on Linux, in WSL or in a container")
	os.Exit(69)
}
