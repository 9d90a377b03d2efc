package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// explain adds to an error of the server what to do about it.
func explain(err error) error {
	refused, is := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return nil
	case !is:
		if pgconn.SafeToRetry(err) {
			return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
		}
		return err
	case refused.Code == "42P01":
		return fmt.Errorf("%w: %w (%w)", casnode.ErrUnprepared, err, node.ErrUnsent)
	case refused.Code == "53300" || refused.Code == "08P01" && strings.Contains(refused.Message, "no more connections allowed"): // of the server, and of PgBouncer
		return fmt.Errorf("%w: %w (%w)", node.ErrContended, err, node.ErrUnsent)
	case refused.Code == "42501":
		return fmt.Errorf("%w: grant the rights that redlatch schema postgres prints (%w)", err, node.ErrUnsent)
	case refused.Code == "25006":
		// A read has found that it is no replica, at least then.
		return fmt.Errorf("transactions are read-only in this session: set default_transaction_read_only = off for its user and database: %w (%w)", err, node.ErrUnsent)
	case refused.Code == "42P10" || refused.Code == "42703" || refused.Code == "42804":
		return fmt.Errorf("%w: %w (%w)", err, errShape, node.ErrUnsent) // no key on the name, no such column, another type
	}
	switch class := refused.Code[:min(2, len(refused.Code))]; class {
	case "08", "25", "57", "58", "XX": // the connection, the session or the server failed, maybe after the commit
		return err
	}
	// The server refused the statement, so its transaction had no effect.
	return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
}
