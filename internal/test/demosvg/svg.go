package main

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// The picture shows one part of the demo at a time, as a terminal would that is
// cleared before each.
const (
	width, rowHeight = 800, 22
	left, textLeft   = 20, 104 // of the first column, and of the second
	top              = 60      // of the first row
	headRoom         = 40      // of the title
	// linger is how long a part stays after its last line, in addition to the
	// pace of the demo.
	linger = 2 * time.Second
)

// still is the part that is shown where nothing may move: the paused client.
const still = 2

const style = `
svg{--back:#f6f8fa;--edge:#d0d7de;--text:#1f2328;--dim:#59636e;--good:#116329;--fault:#7d4e00;--bad:#a40e26}
@media(prefers-color-scheme:dark){svg{--back:#151b23;--edge:#3d444d;--text:#f0f6fc;--dim:#9198a1;--good:#3fb950;--fault:#d29922;--bad:#f85149}}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--text);white-space:pre}
.who,.title{fill:var(--dim)}.heading{font-weight:bold}.good{fill:var(--good)}.fault{fill:var(--fault)}.bad{fill:var(--bad);font-weight:bold}
g{opacity:0}g.still{opacity:1}
@media(prefers-reduced-motion:no-preference){
`

// shown is a line in the picture: in which part, in which row of it, from when
// to when.
type shown struct {
	line
	part, row int
	from, to  time.Duration
}

// arrange puts lines into parts. A part begins with a heading. Lines before the
// first heading belong to the first part.
func arrange(lines []line) (all []shown, parts int, end time.Duration) {
	part, row := 1, 0
	begin := 0 // of the part
	var lingered time.Duration
	for i, l := range lines {
		if l.Tone == "heading" && parts > 0 {
			lingered += linger
		}
		at := l.Time.Sub(lines[0].Time) + lingered
		if l.Tone == "heading" {
			if parts++; parts > 1 {
				for j := begin; j < len(all); j++ {
					all[j].to = at
				}
				part, row, begin = parts, 0, len(all)
			}
		}
		all = append(all, shown{line: lines[i], part: part, row: row, from: at})
		row++
		end = at
	}
	end += 2 * linger
	for j := begin; j < len(all); j++ {
		all[j].to = end
	}
	return all, parts, end
}

// render returns the picture. Without animation it shows one part as it was when
// it ended.
func render(lines []line) string {
	all, _, end := arrange(lines)
	rows := 0
	var begin time.Duration // it begins with the part that matters most, and goes round
	for _, l := range all {
		if l.part == still {
			begin = l.from
			break
		}
	}
	var motion, body strings.Builder
	percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(end) }
	for i, l := range all {
		rows = max(rows, l.row+1)
		class := ""
		if l.part == still {
			class = ` class="still"`
		}
		fmt.Fprintf(&motion, "#l%d{animation:k%d %.1fs step-end -%.1fs infinite}@keyframes k%d{0%%{opacity:0}%.2f%%{opacity:1}%.2f%%{opacity:0}}\n",
			i, i, end.Seconds(), begin.Seconds(), i, percent(l.from), min(percent(l.to), 100))
		y := top + l.row*rowHeight
		fmt.Fprintf(&body, `<g id="l%d"%s>`, i, class)
		x := left
		if l.Who != "" {
			x = textLeft
			fmt.Fprintf(&body, `<text class="who" x="%d" y="%d">%s</text>`, left, y, html.EscapeString(l.Who))
		}
		fmt.Fprintf(&body, `<text class="%s" x="%d" y="%d">%s</text></g>`+"\n", l.Tone, x, y, html.EscapeString(l.Text))
	}
	height := top + rows*rowHeight
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">
<title id="t">redlatch demo, recorded</title>
<desc id="d">%s</desc>
<style>%s%s}</style>
<rect x=".5" y=".5" width="%d" height="%d" rx="8" fill="var(--back)" stroke="var(--edge)"/>
<text class="title" x="%d" y="26">$ redlatch demo</text>
<path d="M0 %d.5H%d" stroke="var(--edge)"/>
%s</svg>
`, width, height, width, height, html.EscapeString(describe(all)), style, motion.String(), width-1, height-1, left, headRoom-2, width, body.String())
}

// describe is what the still part says, for readers that do not see it.
func describe(all []shown) string {
	var texts []string
	for _, l := range all {
		if l.part == still {
			texts = append(texts, strings.TrimSpace(l.Who+" "+l.Text))
		}
	}
	return strings.Join(texts, "; ")
}
