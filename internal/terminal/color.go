package terminal

import (
	"io"
	"os"
	"regexp"
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

var token = regexp.MustCompile(`[0-9]{20}`)

// Apart splits a text at its tokens: every second part is what a token shares with
// the one before, and does not tell the two apart. last is the last token of the text
// before, and becomes that of this one.
func Apart(text string, last *string) (parts []string) {
	from := 0
	for _, at := range token.FindAllStringIndex(text, -1) {
		same := 0
		for same < len(*last) && (*last)[same] == text[at[0]+same] {
			same++
		}
		parts = append(parts, text[from:at[0]], text[at[0]:at[0]+same])
		*last, from = text[at[0]:at[1]], at[0]+same
	}
	return append(parts, text[from:])
}

// colourful follows NO_COLOR, with any value, and the terminal type dumb.
func colourful(noColor, term string, terminal bool) bool {
	return terminal && noColor == "" && term != "dumb"
}
