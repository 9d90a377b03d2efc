package report

import (
	"fmt"
	"html"
	"strings"

	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/measure"
)

// Chart is bars of a figure, one for each contender that was measured in a
// situation on a number of servers, such as pair/1.
type Chart struct{ Title, Figure, Cells string }

// The measures of a picture: the width, where bars begin and how long they may
// be, and the height of a line.
const (
	wide, barFrom, barMost, lineHeight = 760, 250, 400, 20
)

// colours are by the group of a contender.
var colours = map[contender.Group]string{contender.Ours: "#0b6e99", contender.Peer: "#9aa5b1", contender.Floor: "#e0c9a6"}

// SVG returns the charts of a page as one picture.
func (p Page) SVG(results []*measure.Result) string {
	var b strings.Builder
	y := lineHeight
	text := func(x int, anchor, weight, text string) {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" font-weight=\"%s\">%s</text>\n", x, y, anchor, weight, html.EscapeString(text))
	}
	for _, c := range p.Charts {
		f, rows, most := figures[c.Figure], []*measure.Result(nil), 0.0
		for _, x := range results {
			if n := value(f, x); strings.HasPrefix(x.CellID(), c.Cells+"/") && x.Failed == "" && n > 0 {
				rows, most = append(rows, x), max(most, n)
			}
		}
		if len(rows) == 0 {
			continue
		}
		text(lineHeight, "start", "bold", c.Title)
		for _, x := range rows {
			y += lineHeight
			n := value(f, x)
			length := int(barMost * n / most)
			text(barFrom-8, "end", "normal", strings.ReplaceAll(x.Title, "`", ""))
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"14\" fill=\"%s\"/>\n", barFrom, y-12, max(length, 1), colours[x.Group])
			text(barFrom+length+6, "start", "normal", f.format(n))
		}
		y += 2 * lineHeight
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%[1]d\" height=\"%[2]d\" viewBox=\"0 0 %[1]d %[2]d\" font-family=\"sans-serif\" font-size=\"13\">\n"+
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", wide, y) + b.String() + "</svg>\n"
}
