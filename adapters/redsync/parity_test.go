//go:build unix

package redsync_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// exported returns the exported names of a package, each with its declaration:
// the signature of a function or method, the exported fields of a type.
func exported(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	//lint:ignore SA1019 build tags do not matter here
	parsed, err := parser.ParseDir(files, dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	must(t, err)
	names := map[string]string{}
	note := func(name string, declaration ast.Node) {
		var text bytes.Buffer
		must(t, printer.Fprint(&text, files, declaration))
		names[name] = text.String()
	}
	for _, f := range parsed["redsync"].Files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if receiver := receiverOf(d); d.Name.IsExported() && (receiver == "" || ast.IsExported(receiver)) {
					note(strings.TrimPrefix(receiver+"."+d.Name.Name, "."), withoutNames(d.Type))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							note(spec.Name.Name, withoutPrivate(spec.Type))
						}
					case *ast.ValueSpec:
						if spec.Names[0].IsExported() {
							names[spec.Names[0].Name] = d.Tok.String()
						}
					}
				}
			}
		}
	}
	return names
}

// receiverOf returns the type of a method's receiver; "" for a function.
func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	return receiver.(*ast.Ident).Name
}

// withoutNames returns a signature by its types alone.
func withoutNames(f *ast.FuncType) *ast.FuncType {
	strip := func(list *ast.FieldList) *ast.FieldList {
		if list == nil {
			return nil
		}
		out := &ast.FieldList{}
		for _, field := range list.List {
			for range max(len(field.Names), 1) {
				out.List = append(out.List, &ast.Field{Type: withoutPackage(field.Type)})
			}
		}
		return out
	}
	return &ast.FuncType{Params: strip(f.Params), Results: strip(f.Results)}
}

// withoutPackage returns a type from another package without the name under
// which that was imported.
func withoutPackage(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.Ellipsis:
		return &ast.Ellipsis{Elt: withoutPackage(e.Elt)}
	case *ast.FuncType:
		return withoutNames(e)
	}
	return e
}

// withoutPrivate returns a type without what a program cannot use.
func withoutPrivate(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncType:
		return withoutNames(e)
	case *ast.StructType:
		out := &ast.StructType{Fields: &ast.FieldList{}}
		for _, f := range e.Fields.List {
			if slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
				out.Fields.List = append(out.Fields.List, f)
			}
		}
		return out
	}
	return e
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
