//go:build unix

package fence_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	rueidisclient "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

// holderConfig says what a holder locks, and what it writes to.
type holderConfig struct {
	Fenced bool // whether it passes its token to the stores
	Lock   string
	Nodes  []string
	TTL    time.Duration

	SQL   map[string]sqlStore // by name
	Redis string              // the address
	HTTP  string              // the URL of the row
}

// sqlStore is a database with two tables, each with one row of id 1: the one
// is protected by the guard table, the other by its own token column.
type sqlStore struct {
	Driver, DSN           string
	Dialect               fence.Dialect
	Guard, Guarded, Owned string // tables
}

// resource is what the holder's lock protects, in every store.
const resource = "account/1"

// runHolder is a process that acquires the lock and reports that, with its
// token. For each line that it reads, it writes that text to every store
// without checking the lease again, as code does that trusts its lock, and
// reports the result for each store.
func runHolder(config string) error {
	var c holderConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	nodes, err := rueidis.Nodes(c.Nodes...)
	if err != nil {
		return err
	}
	locks, err := redlatch.New(nodes, nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	lease, err := locks.Lock(context.Background(), c.Lock, &redlatch.LockOptions{TTL: c.TTL, Wait: 30 * time.Second})
	if err != nil {
		return err
	}
	writers, err := c.writers(lease.Token())
	if err != nil {
		return err
	}
	fmt.Println("token", uint64(lease.Token()))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		outcome := map[string]string{}
		for store, write := range writers {
			outcome[store] = tell(write(in.Text()))
		}
		if err := json.NewEncoder(os.Stdout).Encode(outcome); err != nil {
			return err
		}
	}
	return nil
}

// tell returns the result of a write as text.
func tell(err error) string {
	var stale *fence.StaleError
	switch {
	case err == nil:
		return "written"
	case errors.As(err, &stale):
		return fmt.Sprintf("stale after %d", uint64(stale.Highest))
	}
	return "failed: " + err.Error()
}

// writers returns, for each store, the function that writes a text to it.
func (c holderConfig) writers(token redlatch.Token) (map[string]func(text string) error, error) {
	ctx := context.Background()
	writers := map[string]func(string) error{}
	for name, s := range c.SQL {
		db, err := sql.Open(s.Driver, s.DSN)
		if err != nil {
			return nil, err
		}
		guard, err1 := fence.NewSQL(db, s.Dialect, &fence.SQLOptions{Table: s.Guard})
		column, err2 := fence.NewColumn(s.Dialect, s.Owned, "id", "token")
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		set := "writer = " + first(s.Dialect)
		writers[name+", guard row"] = func(text string) error {
			if c.Fenced {
				return guard.Do(ctx, resource, token, func(tx *sql.Tx) error {
					_, err := tx.Exec("UPDATE "+s.Guarded+" SET "+set+" WHERE id = 1", text)
					return err
				})
			}
			_, err := db.Exec("UPDATE "+s.Guarded+" SET "+set+" WHERE id = 1", text)
			return err
		}
		writers[name+", token column"] = func(text string) error {
			if c.Fenced {
				return column.Update(ctx, db, 1, token, set, text)
			}
			_, err := db.Exec("UPDATE "+s.Owned+" SET "+set+" WHERE id = 1", text)
			return err
		}
	}

	client, err := rueidisclient.NewClient(rueidisclient.ClientOption{InitAddress: []string{c.Redis}, DisableCache: true})
	if err != nil {
		return nil, err
	}
	driver, err := rueidis.Driver(client)
	if err != nil {
		return nil, err
	}
	values, err := fence.NewRedis(driver, nil)
	if err != nil {
		return nil, err
	}
	blind := redis.NewScript("blind", "redis.call('SET', KEYS[1], ARGV[1]); return {}")
	writers["redis"] = func(text string) error {
		if c.Fenced {
			return values.Set(ctx, resource, text, token, 0)
		}
		_, err := driver.Eval(ctx, redis.Call{Script: blind, Keys: []string{"fence:{" + resource + "}:value"}, Args: []string{text}})
		return err
	}

	web := &http.Client{Transport: &fence.Transport{}}
	if c.Fenced {
		web.Transport = &fence.Transport{Token: token}
	}
	writers["http"] = func(text string) error {
		req, err := http.NewRequest("PUT", c.HTTP, strings.NewReader(text))
		if err != nil {
			return err
		}
		resp, err := web.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if err := fence.ResponseError(resp); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}
	return writers, nil
}
