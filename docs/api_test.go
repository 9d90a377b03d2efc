package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// packages are those whose names the documentation uses, with their folders.
var packages = map[string]string{
	"redlatch": ".", "admin": "admin", "fence": "fence", "node": "node", "ui": "ui", "casnode": "store/casnode",
	"registry": "node/registry", "risk": "node/risk", "observe": "observe", "nodetest": "node/nodetest", "casnodetest": "store/casnode/casnodetest",
	"direct": "store/redis/direct", "goredis": "store/redis/goredis", "rueidis": "store/redis/rueidis",
	"etcd": "store/etcd", "memory": "store/memory", "mysql": "store/mysql", "postgres": "store/postgres", "sqlite": "store/sqlite", "zookeeper": "store/zookeeper",
}

// apiName is package.Name, package.Type.Member or, of the root, Type.Member.
var apiName = regexp.MustCompile("`(?:([a-z]+)\\.)?([A-Z]\\w+)(?:\\.([A-Z]\\w+))?(?:[({][^`]*)?`")

// TestEveryNameOfTheAPIThatTheDocumentationUsesExists finds names that were left
// behind when a function, a type or a field was renamed.
func TestEveryNameOfTheAPIThatTheDocumentationUsesExists(t *testing.T) {
	exported := map[string]map[string]bool{}
	for name, folder := range packages {
		exported[name] = exportedBy(t, filepath.Join("..", folder))
	}
	count := 0
	each(t, ".", ".md", func(path, text string) {
		for _, m := range apiName.FindAllStringSubmatch(text, -1) {
			pkg, name, member := m[1], m[2], m[3]
			if pkg == "" {
				pkg = "redlatch"
				if member == "" || !exported[pkg][name] {
					continue // a word, or a name of another project
				}
			}
			names, ours := exported[pkg]
			if !ours {
				continue
			}
			count++
			switch {
			case !names[name]:
				t.Errorf("%s names %s.%s, which does not exist", path, pkg, name)
			case member != "" && !names[name+".*"] && !names[name+"."+member]:
				t.Errorf("%s names %s.%s.%s, which does not exist", path, pkg, name, member)
			}
		}
	})
	if count < 100 {
		t.Errorf("found %d names of the API: this looked in the wrong place", count)
	}
}

// exportedBy returns the exported names of a package, as Name and Type.Member;
// Type.* is for a type of which other packages say what members it has.
func exportedBy(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", folder, err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		check.Must(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = true
				} else {
					names[typeName(d.Recv.List[0].Type)+"."+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					exportedBySpec(spec, names)
				}
			}
		}
	}
	return names
}

func exportedBySpec(spec ast.Spec, names map[string]bool) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names[n.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		var fields *ast.FieldList
		switch of := s.Type.(type) {
		case *ast.StructType:
			fields = of.Fields
		case *ast.InterfaceType:
			fields = of.Methods
		}
		if s.Assign.IsValid() {
			names[s.Name.Name+".*"] = true
		}
		if fields == nil {
			return
		}
		for _, f := range fields.List {
			if len(f.Names) == 0 {
				names[s.Name.Name+".*"] = true // embedded
			}
			for _, n := range f.Names {
				names[s.Name.Name+"."+n.Name] = true
			}
		}
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
