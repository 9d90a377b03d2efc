//go:build unix

package redsync_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"strings"
	"testing"
)

// exported returns the exported declarations of a package by their names: functions and
// methods without their bodies, types without what a program cannot use. Names of
// parameters, and of imported packages, are left out.
func exported(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	//lint:ignore SA1019 build tags do not matter here
	parsed, err := parser.ParseDir(files, dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	must(t, err)
	//lint:ignore SA1019 the same
	ast.PackageExports(parsed["redsync"])
	declared := map[string]string{}
	note := func(name string, declaration ast.Node) {
		ast.Inspect(declaration, withoutNames)
		var text bytes.Buffer
		must(t, printer.Fprint(&text, files, declaration))
		declared[name] = strings.NewReplacer("redis.", "", "pools.", "").Replace(text.String())
	}
	for _, f := range parsed["redsync"].Files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiverOf(d) + "." + name
				}
				note(name, d.Type)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						note(spec.Name.Name, spec.Type)
					case *ast.ValueSpec:
						declared[spec.Names[0].Name] = d.Tok.String()
					}
				}
			}
		}
	}
	return declared
}

// receiverOf returns the type of a method's receiver.
func receiverOf(d *ast.FuncDecl) string {
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	return receiver.(*ast.Ident).Name
}

// withoutNames replaces the parameters and results of a signature by their types.
func withoutNames(n ast.Node) bool {
	f, ok := n.(*ast.FuncType)
	if !ok {
		return true
	}
	for _, list := range []*ast.FieldList{f.Params, f.Results} {
		if list == nil {
			continue
		}
		var types []*ast.Field
		for _, field := range list.List {
			for range max(len(field.Names), 1) {
				types = append(types, &ast.Field{Type: field.Type})
			}
		}
		list.List = types
	}
	return true
}

// TestEverythingThatRedsyncExportsIsHere compares the two packages by their
// source.
func TestEverythingThatRedsyncExportsIsHere(t *testing.T) {
	t.Parallel()
	want, got := exported(t, moduleDir(t, "github.com/go-redsync/redsync/v4")), exported(t, ".")
	if len(want) < 30 {
		t.Fatalf("redsync exports %d names: this looked in the wrong place", len(want))
	}
	for name, declaration := range want {
		if name == "ErrTaken" {
			continue // it has one field more
		}
		if got[name] != declaration {
			t.Errorf("redsync has %s as\n\t%s\nand this package as\n\t%s", name, declaration, got[name])
		}
	}
}
