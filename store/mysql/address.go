package mysql

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/redlatch/redlatch/internal/nodeaddress"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/registry"
)

func init() {
	for _, scheme := range []string{"mysql", "mariadb"} {
		registry.Register(scheme, "github.com/redlatch/redlatch/store/mysql", func(address string) (node.Node, error) { return Open(address, nil) })
	}
}

// Open returns a node for an address:
//
//	mysql://USER@HOST:PORT/DATABASE?table=NAME&tls=true
//	mysql://USER@/DATABASE?socket=/run/mysqld/mysqld.sock
//
// The port is 3306 if it is left out. tls is true, or skip-verify for a server
// whose certificate is not checked. A data source name, in the form of package
// github.com/go-sql-driver/mysql, is an address too. The node connects when it is
// first used.
func Open(address string, opts *Options) (*Node, error) {
	o := optional.Value(opts)
	if !strings.Contains(address, "://") {
		config, err := mysql.ParseDSN(address)
		if err != nil {
			return nil, &node.ConfigError{Field: "address", Value: "(hidden)", Bound: "mysql://USER@HOST:PORT/DATABASE, or a data source name such as user:password@tcp(host:3306)/database"}
		}
		return open(config, o)
	}
	parts, err := nodeaddress.Parse(address)
	local := err == nil && parts.Hosts[0] == ""
	servers, ok := parts.Servers("3306")
	if err != nil || !slices.Contains([]string{"mysql", "mariadb"}, parts.Scheme) || len(parts.Hosts) > 1 || !ok && !local {
		return nil, &node.ConfigError{Field: "address", Value: "(hidden)", Bound: "mysql://USER@HOST:PORT/DATABASE"}
	}
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = parts.User, parts.Password, strings.TrimPrefix(parts.Path, "/")
	config.Net, config.Addr = "tcp", strings.Join(servers, "")
	for name, value := range parts.Parameters {
		switch {
		case name == "table":
			o.Table = cmp.Or(o.Table, value)
		case name == "socket" && local:
			config.Net, config.Addr = "unix", value
		case name == "tls" && slices.Contains([]string{"true", "skip-verify", "false"}, value):
			config.TLSConfig = value
		case name == "tls":
			return nil, &node.ConfigError{Field: "tls", Value: value, Bound: "true, skip-verify or false"}
		default:
			return nil, &node.ConfigError{Field: name, Value: value, Bound: "one of the parameters table, tls and, without a host, socket"}
		}
	}
	switch {
	case config.DBName == "" || strings.Contains(config.DBName, "/"):
		return nil, &node.ConfigError{Field: "database", Value: config.DBName, Bound: "a name after the host: mysql://HOST/DATABASE"}
	case local && config.Net == "tcp":
		return nil, &node.ConfigError{Field: "host", Value: "", Bound: "a host, or the parameter socket"}
	}
	return open(config, o)
}
