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
	"runtime/debug"
	"strings"
)

// bom is a document of CycloneDX 1.6, with the fields that we fill.
type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp,omitempty"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hashes     []hash     `json:"hashes,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// bomOf returns the document of a program.
func bomOf(file, version, date string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if version == "" {
		version = info.Main.Version
	}
	sum := sha256.Sum256(content)
	program := module("application", info.Main.Path, version)
	program.Name = path.Base(info.Path)
	program.PURL += "#" + strings.TrimPrefix(strings.TrimPrefix(info.Path, info.Main.Path), "/")
	program.Ref = program.PURL
	program.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum[:])}}
	for _, s := range info.Settings {
		program.Properties = append(program.Properties, property{"go:build:" + s.Key, s.Value})
	}
	doc := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		Serial:     "urn:uuid:" + serial(sum),
		Metadata:   metadata{date, program},
		Components: components(info, version),
	}
	doc.Dependencies = dependencies(program, doc.Components)
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}

// components are the modules of a program, and Go's standard library. Our own
// modules, which have no version in a build by go.work, are all of one version.
func components(info *debug.BuildInfo, version string) []component {
	all := []component{module("library", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version == "(devel)" {
			m.Version = version
		}
		c := module("library", m.Path, m.Version)
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		all = append(all, c)
	}
	return all
}

func module(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}

// dependencies has the program depend on all others: which of them needs which
// the program does not say.
func dependencies(program component, others []component) []dependency {
	on := dependency{Ref: program.Ref}
	for _, c := range others {
		on.DependsOn = append(on.DependsOn, c.Ref)
	}
	return []dependency{on}
}

// serial is a UUID of the program's hash, so that the same program has the same
// document.
func serial(sum [sha256.Size]byte) string {
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80 // version 8: by a rule of our own
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
