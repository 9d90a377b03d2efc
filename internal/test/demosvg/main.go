// Command demosvg records redlatch demo and makes a picture of it that moves:
// docs/img/demo.svg. Run it with make demo-svg.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"time"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "docs/img/demo.svg", "the picture")
	flag.Parse()
	lines, err := record(exec.Command("go", "run", "./cmd/redlatch", "demo", "--json"))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out, []byte(render(lines)), 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d lines\n", *out, len(lines))
}

// line is a line of the demo, and when it was printed.
type line struct {
	Time            time.Time
	Who, Tone, Text string
}

// record runs the demo.
func record(cmd *exec.Cmd) ([]line, error) {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var lines []line
	for in := bufio.NewScanner(out); in.Scan(); {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return nil, err
		}
		fmt.Println(l.Who, l.Text)
		lines = append(lines, l)
	}
	return lines, cmd.Wait()
}
