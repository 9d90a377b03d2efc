module github.com/redlatch/redlatch/adapters/cron

go 1.26.0

require (
	github.com/netresearch/go-cron v0.16.0
	github.com/redlatch/redlatch v0.1.0
	github.com/robfig/cron/v3 v3.0.1
)

require golang.org/x/sys v0.49.0 // indirect
