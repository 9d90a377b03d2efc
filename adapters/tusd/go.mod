module github.com/redlatch/redlatch/adapters/tusd

go 1.26.0

require (
	github.com/redlatch/redlatch v0.1.0
	github.com/tus/tusd/v2 v2.10.1
)

require golang.org/x/exp v0.0.0-20260611194520-c48552f49976 // indirect
