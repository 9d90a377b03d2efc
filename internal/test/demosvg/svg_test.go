package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// recorded is a demo of three parts, a line a second.
func recorded() []line {
	begin := time.Now()
	lines := []line{
		{Tone: "plain", Text: "before"},
		{Tone: "heading", Text: "1. <one>"}, {Who: "A", Tone: "plain", Text: "a"},
		{Tone: "heading", Text: "2. two"}, {Who: "B", Tone: "bad", Text: "b"},
		{Tone: "heading", Text: "3. three"}, {Who: "C", Tone: "good", Text: "c"},
	}
	for i := range lines {
		lines[i].Time = begin.Add(time.Duration(i) * time.Second)
	}
	return lines
}

func TestPartsFollowEachOther(t *testing.T) {
	all, parts, end := arrange(recorded())
	var got [][4]int // the part and the row of each line, and from when to when it is shown
	for _, l := range all {
		got = append(got, [4]int{l.part, l.row, int(l.from.Seconds()), int(l.to.Seconds())})
	}
	want := [][4]int{{1, 0, 0, 5}, {1, 1, 1, 5}, {1, 2, 2, 5}, {2, 0, 5, 9}, {2, 1, 6, 9}, {3, 0, 9, 14}, {3, 1, 10, 14}}
	if parts != 3 || end != 6*time.Second+4*linger || !slices.Equal(got, want) {
		t.Errorf("%d parts in %v, shown as %v", parts, end, got)
	}
}

// TestPictureIsFitForAPage reads the picture that is committed, and one of a
// recording that has to be escaped.
func TestPictureIsFitForAPage(t *testing.T) {
	committed, err := os.ReadFile("../../../docs/img/demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	for name, picture := range map[string]string{"docs/img/demo.svg": string(committed), "rendered": render(recorded())} {
		if len(picture) > 60_000 {
			t.Errorf("%s has %d bytes", name, len(picture))
		}
		for _, has := range []string{"prefers-reduced-motion", "prefers-color-scheme", "@keyframes", "<title", `class="still"`} {
			if !strings.Contains(picture, has) {
				t.Errorf("%s has no %s", name, has)
			}
		}
		for _, lacks := range []string{"<script", "href", "url(", "@import"} {
			if strings.Contains(picture, lacks) {
				t.Errorf("%s has %s", name, lacks)
			}
		}
		for d := xml.NewDecoder(strings.NewReader(picture)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}
