package redis

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"path"
	"strings"
)

// A Script is a Lua script and the digest by which a server knows it.
type Script struct {
	Name   string
	Source string
	SHA1   string
}

// NewScript returns a script; name is what it is called in errors.
func NewScript(name, source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{Name: name, Source: source, SHA1: hex.EncodeToString(sum[:])}
}

//go:embed lua
var lua embed.FS

// include begins a line of a script that a helper from lua/lib takes the place
// of.
const include = "--#include "

// load returns the script in lua/NAME.lua, with the helpers it includes. They
// stand where they are included, so that a common case before them does not pay
// for their definition.
func load(name string) *Script { return NewScript(name, whole("lua/"+name+".lua")) }

// whole returns a file with the helpers that it includes.
func whole(file string) string {
	var text strings.Builder
	for line := range strings.Lines(read(file)) {
		if helper, found := strings.CutPrefix(strings.TrimLeft(line, " "), include); found {
			line = whole(path.Join("lua/lib", strings.TrimSuffix(helper, "\n")+".lua"))
		} else if strings.HasPrefix(strings.TrimLeft(line, " "), "--") {
			continue // a comment
		}
		text.WriteString(line)
	}
	return text.String()
}

func read(file string) string {
	text, err := lua.ReadFile(file)
	if err != nil {
		panic(err) // the file is part of this package
	}
	// The scripts write the prefix of their keys out; keys.go has it.
	return strings.ReplaceAll(string(text), "redlatch:1:", reserved)
}

// The scripts, one for each operation. Each is idempotent for its own value.
var (
	acquireScript  = load("acquire")
	repairScript   = load("repair")
	markScript     = load("mark")
	extendScript   = load("extend")
	releaseScript  = load("release")
	yieldScript    = load("yield")
	inspectScript  = load("inspect")
	identityScript = load("identity")
	breakScript    = load("break")
	scanScript     = load("scan")
	evidenceScript = load("evidence")
	lookScript     = load("look")
	recordsScript  = load("records")
	healthScript   = load("health")
	publishScript  = load("publish")
	mastersScript  = load("masters")
)
