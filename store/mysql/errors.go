package mysql

import (
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// The numbers of errors.
const (
	recordChanged = 1020 // under snapshot isolation
	shutdown      = 1053
	unknownColumn = 1054
	duplicate     = 1062
	denied        = 1142
	noTable       = 1146
	commitFailed  = 1180
	lockWait      = 1205
	deadlock      = 1213
	needsRight    = 1227
	noStatement   = 1243
	readOnly      = 1290
	interrupted   = 1317
	connKilled    = 1927
	timeUp        = 1969 // MariaDB
	readTimeUp    = 3024 // MySQL
)

// number returns the number of a server's error; 0 if it is none.
func number(err error) uint16 {
	var refused *mysql.MySQLError
	if errors.As(err, &refused) {
		return refused.Number
	}
	return 0
}

var errBetween = fmt.Errorf("other transactions came between (%w)", node.ErrUnsent)

// explain adds to an error of the server what to do about it.
func explain(err error) error {
	if err == nil {
		return nil
	}
	switch number(err) {
	case 0: // not the server's
		return err
	case shutdown, commitFailed, interrupted, connKilled, timeUp, readTimeUp:
		return err // maybe after the commit
	case noTable:
		return fmt.Errorf("%w: %w (%w)", casnode.ErrUnprepared, err, node.ErrUnsent)
	case denied:
		return fmt.Errorf("%w: grant the rights that redlatch schema mysql prints (%w)", err, node.ErrUnsent)
	case readOnly:
		return fmt.Errorf("%s: %w (%w)", unfit["read_only"], err, node.ErrUnsent)
	}
	// The server refused the statement, so it had no effect.
	return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
}
