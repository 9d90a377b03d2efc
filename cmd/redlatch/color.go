package main

import (
	"io"
	"os"
)

// paint puts text between the codes of a colour, where somebody may see it and
// has not asked us not to.
func paint(out io.Writer, colour, text string) string {
	f, ok := out.(*os.File)
	if !ok || !colourful(os.Getenv("NO_COLOR"), os.Getenv("TERM"), isTerminal(f)) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// colourful heeds NO_COLOR, whatever it is set to, and terminals that say they
// know nothing.
func colourful(noColor, term string, terminal bool) bool {
	return terminal && noColor == "" && term != "dumb"
}
