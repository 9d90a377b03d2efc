//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/node"
)

// former is Check by a program that knows nothing of readers: it compares the number
// that is kept, and sets it.
func (s store) former(_ context.Context, resource string, token node.Token) error {
	highest, err := s.highest(resource)
	if err == nil && token < highest {
		err = &fence.StaleError{Resource: resource, Token: token}
	}
	if err != nil {
		return err
	}
	return s.put(resource, token)
}

// TestNumberOfAWriterCountsAsBoth is about resources that were last
// written by a program that knows nothing of readers.
func TestNumberOfAWriterCountsAsBoth(t *testing.T) {
	ctx := context.Background()
	eachStore(t, func(t *testing.T, s store) {
		former := s.Check
		if s.put != nil {
			former = s.former
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
