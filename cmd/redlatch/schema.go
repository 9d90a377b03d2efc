package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/store/mysql"
	"github.com/redlatch/redlatch/store/postgres"
)

// schemas are the statements for a table, by the kind of database.
var schemas = map[string]func(table string) (string, error){
	"postgres": postgres.Schema,
	"mysql":    mysql.Schema,
}

func newSchema(*reporter) *cobra.Command {
	table := ""
	cmd := &cobra.Command{
		Use:   "schema postgres|mysql",
		Short: "Print the statements that create the table of locks",
		Long: `Print the statements that create the table of locks in a database, and give a user
called locks the rights to use it. A node creates the table itself if its user may.`,
		Example:   `  redlatch schema postgres | psql postgres://admin@db.example.com/app`,
		ValidArgs: []string{"mysql", "postgres"},
		Args:      oneArg("database"),
		RunE: func(cmd *cobra.Command, args []string) error {
			schema, known := schemas[args[0]]
			if !known {
				return usageError(fmt.Errorf("there is no schema for %q: it is %s or %s", args[0], "postgres", "mysql"), "redlatch schema postgres")
			}
			text, err := schema(table)
			if err != nil {
				return outcomeOf(err)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return unwritten(err)
		},
	}
	cmd.Flags().StringVar(&table, "table", "", "the `name` of the table, with its schema, if that is not public, or its database (default redlatch_lock)")
	return cmd
}
