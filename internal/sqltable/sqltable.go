// Package sqltable checks and quotes the names of tables.
package sqltable

import (
	"regexp"
	"strings"

	"github.com/redlatch/redlatch/node"
)

// Default is the name of the table of locks, if none is set.
const Default = "redlatch_lock"

var valid = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// Quote returns a table's name in quotes; in is what it may be in: a schema or a
// database.
func Quote(table, quote, in string) (string, error) {
	if !valid.MatchString(table) {
		return "", &node.ConfigError{Field: "Table", Value: table, Bound: "a name of letters, digits and _, with a " + in + " and a dot before it or without"}
	}
	return quote + strings.ReplaceAll(table, ".", quote+"."+quote) + quote, nil
}
