// Sbom says what a build of ours is made of, for the packages of a release:
//
//	sbom bom [-version V] [-date D] PROGRAM FILE   a CycloneDX document, from what the Go tool wrote into PROGRAM
//	sbom licences PACKAGE FILE                     the licences of all modules that PACKAGE is built from, on any platform
//
// Both depend on their input alone, so a release can be repeated.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	version := flags.String("version", "", "the `version` of the program, instead of the one in it")
	date := flags.String("date", "", "the `date` of the document, as RFC 3339")
	if len(args) == 0 {
		return fmt.Errorf("the verb is missing: it must be bom or licences")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return fmt.Errorf("%s has %d arguments: it must have two", args[0], flags.NArg())
	}
	from, to := flags.Arg(0), flags.Arg(1)
	var text []byte
	var err error
	switch args[0] {
	case "bom":
		text, err = bomOf(from, *version, *date)
	case "licences":
		text, err = licencesOf(from)
	default:
		return fmt.Errorf("the verb is %q: it must be bom or licences", args[0])
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
