// Package sqltable checks and quotes the names of tables, and compares a table with
// what locks need of it.
package sqltable

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
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

// longest is how long a table's name may be.
const longest = 63

// Beside returns the name, in quotes, of a table that belongs to another one. Of a long
// name it has the beginning, and a hash.
func Beside(quoted, suffix string) string {
	quote := quoted[len(quoted)-1:]
	at := strings.LastIndex(quoted[:len(quoted)-1], quote) + 1
	name := quoted[at : len(quoted)-1]
	if len(name)+len(suffix) > longest {
		h := fnv.New64a()
		h.Write([]byte(name))
		sum := fmt.Sprintf("_%016x", h.Sum64())
		name = name[:longest-len(suffix)-len(sum)] + sum
	}
	return quoted[:at] + name + suffix + quote
}

// Need is a part of a table that locks depend on, and what it must be: one of
// several, with " or " between them.
type Need struct{ Part, Is string }

// Check compares a table with what is needed of it. has is what the database says of
// each part. Without its key, or with one that takes two names for the same, a table
// would have two rows of a name, or one row of two.
func Check(table, store string, needs []Need, has map[string]string) error {
	var wrong []string
	for _, need := range needs {
		if is := has[need.Part]; !slices.Contains(strings.Split(need.Is, " or "), is) {
			wrong = append(wrong, fmt.Sprintf("its %s is %s and not %s", need.Part, cmp.Or(is, "missing"), need.Is))
		}
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("the table %s is not the one that redlatch schema %s prints: %s (%w)", table, store, strings.Join(wrong, "; "), node.ErrUnsent)
}
