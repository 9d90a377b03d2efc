package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
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
	if parts != 3 || end != 6*time.Second+2*linger+2*linger {
		t.Fatalf("%d parts, in %v", parts, end)
	}
	want := []struct {
		part, row int
		from, to  time.Duration
	}{
		{1, 0, 0, 5 * time.Second}, {1, 1, 1 * time.Second, 5 * time.Second}, {1, 2, 2 * time.Second, 5 * time.Second},
		{2, 0, 5 * time.Second, 9 * time.Second}, {2, 1, 6 * time.Second, 9 * time.Second},
		{3, 0, 9 * time.Second, end}, {3, 1, 10 * time.Second, end},
	}
	for i, w := range want {
		if g := all[i]; g.part != w.part || g.row != w.row || g.from != w.from || g.to != w.to {
			t.Errorf("line %d is part %d, row %d, from %v to %v; want %+v", i, g.part, g.row, g.from, g.to, w)
		}
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
