package terminal

import (
	"io"
	"os"
)

// Paint puts a text between the codes of a colour, if out is a terminal that
// shows colours and NO_COLOR is not set.
func Paint(out io.Writer, colour, text string) string {
	f, ok := out.(*os.File)
	if !ok || !colourful(os.Getenv("NO_COLOR"), os.Getenv("TERM"), IsTerminal(f)) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// colourful follows NO_COLOR, with any value, and the terminal type dumb.
func colourful(noColor, term string, terminal bool) bool {
	return terminal && noColor == "" && term != "dumb"
}
