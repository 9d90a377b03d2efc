package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
)

// bom is a document of CycloneDX 1.6, with the fields that we fill.
type bom struct {
	Schema     string      `json:"$schema"`
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Hashes  []hash `json:"hashes,omitempty"`
	PURL    string `json:"purl"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// bomOf returns the document of a program: its modules, and Go's standard library.
// Our own modules, which have no version in a build by go.work, are all of one
// version.
func bomOf(version, date, file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	sum := sha256.Sum256(content)
	program := module("application", info.Main.Path, version)
	program.Name = path.Base(info.Path)
	program.PURL += "#" + strings.TrimPrefix(strings.TrimPrefix(info.Path, info.Main.Path), "/")
	program.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum[:])}}
	all := []component{module("library", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Version == "(devel)" {
			m.Version = version
		}
		all = append(all, module("library", m.Path, m.Version))
	}
	text, err := json.MarshalIndent(bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{date, program}, Components: all,
	}, "", "  ")
	return append(text, '\n'), err
}

func module(kind, path, version string) component {
	return component{Type: kind, Name: path, Version: version,
		PURL: "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")}
}
