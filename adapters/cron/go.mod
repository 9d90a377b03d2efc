module github.com/redlatch/redlatch/adapters/cron

go 1.26.0

require (
	github.com/redlatch/redlatch v0.1.0
	github.com/robfig/cron/v3 v3.0.1
)
