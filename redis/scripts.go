package redis

import (
	"crypto/sha1"
	_ "embed" // for the scripts
	"encoding/hex"
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

//go:embed lua/role.lua
var roleSource string

//go:embed lua/marker.lua
var markerSource string

//go:embed lua/guard.lua
var guardSource string

//go:embed lua/queue.lua
var queueSource string

//go:embed lua/other.lua
var otherSource string

//go:embed lua/offer.lua
var offerSource string

//go:embed lua/quick.lua
var quickSource string

//go:embed lua/acquire.lua
var acquireSource string

//go:embed lua/extend.lua
var extendSource string

//go:embed lua/free.lua
var freeSource string

//go:embed lua/release.lua
var releaseSource string

//go:embed lua/repair.lua
var repairSource string

//go:embed lua/mark.lua
var markSource string

//go:embed lua/inspect.lua
var inspectSource string

//go:embed lua/break.lua
var breakSource string

//go:embed lua/scan.lua
var scanSource string

//go:embed lua/look.lua
var lookSource string

//go:embed lua/masters.lua
var mastersSource string

//go:embed lua/health.lua
var healthSource string

//go:embed lua/publish.lua
var publishSource string

//go:embed lua/identity.lua
var identitySource string

// The scripts, one for each operation. Each is idempotent for its own value.
var (
	acquireScript  = NewScript("acquire", quickSource+roleSource+markerSource+guardSource+queueSource+acquireSource)
	repairScript   = NewScript("repair", roleSource+markerSource+guardSource+queueSource+otherSource+repairSource)
	markScript     = NewScript("mark", roleSource+markerSource+markSource)
	extendScript   = NewScript("extend", otherSource+roleSource+extendSource)
	releaseScript  = NewScript("release", freeSource+queueSource+otherSource+releaseSource)
	offerScript    = NewScript("offer", queueSource+otherSource+offerSource)
	inspectScript  = NewScript("inspect", otherSource+inspectSource)
	identityScript = NewScript("identity", identitySource)
	breakScript    = NewScript("break", queueSource+breakSource)
	scanScript     = NewScript("scan", scanSource)
	lookScript     = NewScript("look", lookSource)
	healthScript   = NewScript("health", healthSource)
	publishScript  = NewScript("publish", publishSource)
	mastersScript  = NewScript("masters", mastersSource)
)
