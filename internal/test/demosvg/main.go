// Command demosvg records redlatch demo and makes a picture of it that moves:
// docs/img/demo.svg. Run it with make demo-svg.
package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"text/template"
	"time"

	"github.com/redlatch/redlatch/internal/terminal"
)

func main() {
	log.SetFlags(0)
	demo := exec.Command("go", "run", "./cmd/redlatch", "demo", "--json")
	demo.Stderr = os.Stderr
	said, err := demo.Output()
	if err != nil {
		log.Fatal(err)
	}
	var picture bytes.Buffer
	if err := draw(&picture, bytes.NewReader(said)); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("docs/img/demo.svg", picture.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// line is a line of the demo, and where and when it is shown.
type line struct {
	Time            time.Time
	Who, Tone, Text string

	Drawn string // the text, with the digits dim that tokens share
	Y     int
	at    time.Duration
	From  float64 // percent of the whole time
	To    float64
	Still bool // it is also shown where nothing may move
}

// linger is how long a part stays after its last line, in addition to the pace of
// the demo.
const linger = 2 * time.Second

// draw shows one part of the demo at a time, as a terminal would that is cleared
// before each. A part begins with a heading. The second one, of the paused client, is
// the first to be shown, and the only one where nothing may move.
func draw(w io.Writer, demo io.Reader) error {
	var all []*line
	parts, height, token := [][]*line{nil}, 0, ""
	for in := json.NewDecoder(demo); in.More(); {
		l := &line{}
		if err := in.Decode(l); err != nil {
			return err
		}
		if l.Tone == "heading" && !strings.HasPrefix(l.Text, "1.") {
			parts = append(parts, nil)
		}
		last := len(parts) - 1
		all, parts[last] = append(all, l), append(parts[last], l)
		for i, text := range terminal.Apart(l.Text, &token) {
			if i%2 != 0 && text != "" {
				text = "<tspan>" + text + "</tspan>"
			} else {
				text = template.HTMLEscapeString(text)
			}
			l.Drawn += text
		}
		l.at = l.Time.Sub(all[0].Time) + time.Duration(last)*linger
		l.Y = 38 + 22*len(parts[last])
		l.Still = last == 1
		height = max(height, l.Y+22)
	}
	end := all[len(all)-1].at + 2*linger
	for i, part := range parts {
		until := end
		if i+1 < len(parts) {
			until = parts[i+1][0].at
		}
		for _, l := range part {
			l.From, l.To = 100*float64(l.at)/float64(end), 100*float64(until)/float64(end)
		}
	}
	return picture.Execute(w, map[string]any{"Lines": all, "Height": height, "Seconds": end.Seconds(), "Begin": parts[1][0].at.Seconds()})
}

var picture = template.Must(template.New("").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {{.Height}}" width="800" height="{{.Height}}" role="img" aria-labelledby="t d">
<title id="t">redlatch demo, recorded</title>
<desc id="d">{{range .Lines}}{{if .Still}}{{html .Who}} {{html .Text}}; {{end}}{{end}}</desc>
<style>
svg{--back:#f6f8fa;--edge:#d0d7de;--text:#1f2328;--dim:#59636e;--good:#116329;--fault:#7d4e00;--bad:#a40e26}
@media(prefers-color-scheme:dark){svg{--back:#151b23;--edge:#3d444d;--text:#f0f6fc;--dim:#9198a1;--good:#3fb950;--fault:#d29922;--bad:#f85149}}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--text);white-space:pre}
.who,.title{fill:var(--dim)}.heading{font-weight:bold}.good{fill:var(--good)}.fault{fill:var(--fault)}.bad{fill:var(--bad);font-weight:bold}tspan{fill:var(--dim);font-weight:normal}
g{opacity:0}g.still{opacity:1}
@media(prefers-reduced-motion:no-preference){
{{range $i, $l := .Lines -}}
#l{{$i}}{animation:k{{$i}} {{printf "%.1f" $.Seconds}}s step-end -{{printf "%.1f" $.Begin}}s infinite}
@keyframes k{{$i}}{0%{opacity:0}{{printf "%.2f" .From}}%{opacity:1}{{printf "%.2f" .To}}%{opacity:0}}
{{end}}}</style>
<rect x=".5" y=".5" width="799" height="{{.Height}}" rx="8" fill="var(--back)" stroke="var(--edge)"/>
<text class="title" x="20" y="26">$ redlatch demo</text>
<path d="M0 38.5H800" stroke="var(--edge)"/>
{{range $i, $l := .Lines -}}
<g id="l{{$i}}"{{if .Still}} class="still"{{end}}><text class="who" x="20" y="{{.Y}}">{{html .Who}}</text>
<text class="{{.Tone}}" x="{{if .Who}}104{{else}}20{{end}}" y="{{.Y}}">{{.Drawn}}</text></g>
{{end}}</svg>
`))
