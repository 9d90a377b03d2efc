//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
)

// What writers send that know nothing of readers, word for word.

type checkFunc func(ctx context.Context, resource string, token node.Token) error

// formerSQL returns Check of such an SQL guard. Its error is a StaleError
// without the highest token.
func formerSQL(d fence.Dialect, db *sql.DB, table string) checkFunc {
	conflict := " ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE guard.token <= excluded.token"
	raise := map[fence.Dialect]string{
		fence.SQLite:     `INSERT INTO "` + table + `" AS guard (resource, token) VALUES (?, ?)` + conflict,
		fence.PostgreSQL: `INSERT INTO "` + table + `" AS guard (resource, token) VALUES ($1, $2)` + conflict,
		fence.MySQL:      "INSERT INTO `" + table + "` (resource, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(LAST_INSERT_ID(token), ?)",
	}[d]
	return func(ctx context.Context, resource string, token node.Token) error {
		args := []any{resource, int64(token)}
		if d == fence.MySQL {
			args = append(args, int64(token))
		}
		result, err := db.ExecContext(ctx, raise, args...)
		if err != nil {
			return err
		}
		if d == fence.MySQL {
			if before, err := result.LastInsertId(); err != nil || before <= int64(token) {
				return err
			}
		} else if n, err := result.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return &fence.StaleError{Resource: resource, Token: token}
	}
}

// formerRedis is the same for Redis.
func formerRedis(driver redis.Driver) checkFunc {
	script := redis.NewScript("former check", `
local highest = redis.call('GET', KEYS[1])
if highest then
  if #highest ~= 20 or string.find(highest, '%D') then
    error('redlatch: the key of the highest token holds something else')
  end
  if ARGV[1] < highest then return {'stale'} end
end
redis.call('SET', KEYS[1], ARGV[1])
return {'accepted'}`)
	return func(ctx context.Context, resource string, token node.Token) error {
		reply, err := driver.Eval(ctx, redis.Call{Script: script, Keys: []string{"fence:{" + resource + "}:token"}, Args: []string{token.String()}})
		if err == nil && reply[0] == "stale" {
			err = &fence.StaleError{Resource: resource, Token: token}
		}
		return err
	}
}

// TestNumberOfAWriterCountsAsBoth is about resources that were last
// written by a program that knows nothing of readers.
func TestNumberOfAWriterCountsAsBoth(t *testing.T) {
	ctx := context.Background()
	eachStore(t, func(t *testing.T, s store) {
		former := s.former
		if former == nil {
			former = s.Check
		}
		must(t, former(ctx, "r", 10))
		wantStale(t, s.Check(ctx, "r", 9), 9, 10)
		wantStale(t, s.CheckRead(ctx, "r", 9), 9, 10)
		for _, reader := range []node.Token{20, 15} {
			if err := s.CheckRead(ctx, "r", reader); err != nil {
				t.Errorf("reader %d: %v", reader, err)
			}
		}
		// It knows nothing of readers, and yet refuses this one.
		if err := former(ctx, "r", 19); !errors.Is(err, fence.ErrStale) {
			t.Errorf("a writer after a later reader: %v", err)
		}
		must(t, former(ctx, "r", 30))
		wantStale(t, s.CheckRead(ctx, "r", 20), 20, 30)
		if err := s.CheckRead(ctx, "r", 31); err != nil {
			t.Errorf("a reader after the writer: %v", err)
		}
	})
}

// TestColumnWithoutRoomForReadersIsNoVerdict has a table with a token column
// alone.
func TestColumnWithoutRoomForReadersIsNoVerdict(t *testing.T) {
	ctx := context.Background()
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db, column, table := accounts(t, d)
			if err := column.CheckRead(ctx, db, 2, 7); err == nil || errors.Is(err, fence.ErrStale) {
				t.Errorf("got %v", err)
			}
			mustExec(t, db, "ALTER TABLE "+table+" ADD COLUMN token_reader BIGINT")
			mustExec(t, db, "ALTER TABLE "+table+" ADD COLUMN token_writer BIGINT")
			for id, token := range map[int]node.Token{1: 1, 2: 6} {
				// Twice: MySQL does not count a row that stays as it is.
				if err := errors.Join(column.CheckRead(ctx, db, id, token), column.CheckRead(ctx, db, id, token)); err != nil {
					t.Errorf("row %d: %v", id, err)
				}
			}
			wantStale(t, column.CheckRead(ctx, db, 2, 5), 5, 6)
			if err := column.CheckRead(ctx, db, 3, 7); !errors.Is(err, sql.ErrNoRows) {
				t.Errorf("a row that is not there: %v", err)
			}
			if b, token := balance(t, db, table, 1); b != 10 || token != 1 {
				t.Errorf("balance %d, token %d", b, token)
			}
		})
	}
}
