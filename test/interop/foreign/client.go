// Package foreign is the foreign clients that redlatch shares keys with: which
// there are, where they come from, and their drivers as processes.
package foreign

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/redlatch/redlatch/test/interop/drive"
)

// Client is a foreign client.
type Client struct {
	Name string
	// Source is where it comes from: Go, npm, PyPI, Maven, Debian.
	Source string
	// Prefix is what the client puts before a name, and so redlatch's
	// Options.Prefix if both are to use the same key.
	Prefix string
	// Setting is what else was set or used on its side.
	Setting string
	// Five is set if it can ask several independent servers.
	Five bool
	// Renews is set if it extends by itself, and has no call for that.
	Renews bool

	open    opener   // a driver in Go
	command []string // a driver in another language
	deps    string   // the folder in .deps that it needs
	envs    []string
}

type opener func(addresses []string) (version string, lock drive.Lock)

// DepsDir is where clients from registries are installed, below the module's
// folder.
const DepsDir = ".deps"

// variable names the client whose driver a process is to be.
const variable = "REDLATCH_INTEROP_CLIENT"

func (c *Client) argv() ([]string, error) {
	if c.open != nil {
		self, err := os.Executable()
		return []string{self}, err
	}
	if _, err := os.Stat(filepath.Join(DepsDir, c.deps)); c.deps != "" && err != nil {
		return nil, fmt.Errorf("%s is not installed (%w): run make interop, which does", c.Name, err)
	}
	return c.command, nil
}

func (c *Client) env() []string {
	if c.open != nil {
		return []string{variable + "=" + c.Name}
	}
	return c.envs
}

// InGo returns a client whose driver is a function of this program, which must
// call Become.
func InGo(name string, open func(addresses []string) (string, drive.Lock)) *Client {
	return &Client{Name: name, Source: "Go", open: open}
}

// Become turns this process into a driver, and ends it, if it was started as
// one. A program whose clients are drivers in Go calls it first.
func Become(clients ...*Client) {
	name := os.Getenv(variable)
	if name == "" {
		return
	}
	for _, c := range clients {
		if c.Name != name {
			continue
		}
		version, lock := c.open(os.Args[1:])
		if err := drive.Serve(version, lock, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "no client is called %q\n", name)
	os.Exit(1)
}
