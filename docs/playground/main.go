//go:build js

// Command playground is the world of the playground, as WebAssembly. The page
// calls the function redlatch with a command, and gets the state of the world,
// both as JSON. make playground builds it.
package main

import (
	"syscall/js"

	"github.com/redlatch/redlatch/internal/test/world"
)

func main() {
	var page world.Page
	js.Global().Set("redlatch", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return page.Do(args[0].String())
	}))
	js.Global().Call("ready")
	select {}
}
