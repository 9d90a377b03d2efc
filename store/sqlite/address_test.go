package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/redlatch/redlatch/node/registry"
)

func TestAddressNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("REDLATCH_STATE_DIR", dir)
	file := filepath.Join(dir, "own.db")
	user, err := DefaultPath()
	must(t, err)
	for address, want := range map[string]string{
		file:                                 "sqlite:" + file,
		"sqlite:" + file:                     "sqlite:" + file,
		"sqlite://" + filepath.ToSlash(file): "sqlite:" + file,
		"sqlite:":                            "sqlite:" + user,
	} {
		n, err := Open(address, nil)
		must(t, err)
		if n.String() != want {
			t.Errorf("%s is %s, want %s", address, n, want)
		}
		n.Close()
		byScheme, err := registry.Open("sqlite:" + file)
		must(t, err)
		byScheme.Close()
	}
	n, err := Open(file, &Options{Name: "cache"})
	must(t, err)
	defer n.Close()
	if n.String() != "cache" {
		t.Errorf("the node is called %s, want cache", n)
	}
}
