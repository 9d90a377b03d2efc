package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
)

// TestPictureIsFitForAPage reads the picture that is committed, and one of a demo of
// three parts, a line a second, which has to be escaped.
func TestPictureIsFitForAPage(t *testing.T) {
	committed, err := os.ReadFile("../../../docs/img/demo.svg")
	check.Must(t, err)
	var demo, drawn bytes.Buffer
	for i, text := range []string{"before", "1. <one>", "a", "2. two", "b", "3. three", "c"} {
		l := line{Time: time.Unix(int64(i), 0), Tone: "plain", Text: text}
		if strings.Contains(text, ". ") {
			l.Tone = "heading"
		}
		check.Must(t, json.NewEncoder(&demo).Encode(l))
	}
	check.Must(t, draw(&drawn, &demo))
	for _, has := range []string{"k1 14.0s step-end -5.0s", "k2{0%{opacity:0}14.29%{opacity:1}35.71%", "k4{0%{opacity:0}42.86%{opacity:1}64.29%", `y="104">a<`, `y="82">b<`} {
		if !strings.Contains(drawn.String(), has) {
			t.Errorf("drawn without %s:\n%s", has, drawn.String())
		}
	}
	for name, picture := range map[string]string{"docs/img/demo.svg": string(committed), "drawn": drawn.String()} {
		for _, has := range []string{"prefers-reduced-motion", "prefers-color-scheme", "<title", `class="still"`} {
			if !strings.Contains(picture, has) {
				t.Errorf("%s has no %s", name, has)
			}
		}
		d := xml.NewDecoder(strings.NewReader(picture))
		for err = nil; err == nil; {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) || strings.Contains(picture, "<script") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
