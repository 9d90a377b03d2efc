// Sbom says what a build of ours is made of, for the packages of a release:
//
//	sbom bom VERSION DATE PROGRAM FILE   a CycloneDX document, from what the Go tool wrote into PROGRAM
//	sbom licences PACKAGE FILE           the licences of all modules that PACKAGE is built from, on any platform
//
// Both depend on their input alone, so a release can be repeated. DATE is as in RFC
// 3339.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	var text []byte
	switch {
	case len(args) == 5 && args[0] == "bom":
		text, err = bomOf(args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "licences":
		text, err = licencesOf(args[1])
	default:
		return errors.New("usage: sbom bom VERSION DATE PROGRAM FILE, or sbom licences PACKAGE FILE")
	}
	if err != nil {
		return err
	}
	return os.WriteFile(args[len(args)-1], text, 0o644)
}
