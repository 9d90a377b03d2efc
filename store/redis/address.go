package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/nodeaddress"
	"github.com/redlatch/redlatch/node"
)

// Kind says what is behind an address: one server, Sentinel or a cluster.
type Kind string

// The kinds of address.
const (
	Single   Kind = "single"   // redis://, rediss://
	Sentinel Kind = "sentinel" // redis+sentinel://, rediss+sentinel://
	Cluster  Kind = "cluster"  // redis+cluster://, rediss+cluster://
)

// Address is a parsed address. The file docs/stores.md has all forms, with
// examples. They are
//
//	redis://[user:password@]host[:port][/database]
//	redis+sentinel://[user:password@]host[:port][+host[:port]…]/master[/database]
//	redis+cluster://[user:password@]host[:port][+host[:port]…]
//
// With rediss in place of redis the connection is encrypted. Parameters after
// a question mark: tls_ca, tls_cert and tls_key name PEM files;
// tls_server_name is the name to expect; sentinel_user and sentinel_password
// log in at the sentinels; with caller_reads=off package direct reads replies on a
// goroutine of its own.
type Address struct {
	Kind     Kind
	Hosts    []string // host:port
	Master   string   // the master's name, for Sentinel
	Database int
	Username string
	Password string
	TLS      *tls.Config // nil for a plain connection

	SentinelUsername string
	SentinelPassword string

	// With NoCallerReads package direct reads replies on a goroutine of its own, also
	// for a caller that is alone.
	NoCallerReads bool

	secure bool
}

const forms = "redis://host:port/database, rediss://…, redis+sentinel://host+host/master or redis+cluster://host+host"

// ParseAddress reads an address. Its errors never show the password.
func ParseAddress(text string) (*Address, error) {
	fail := func(bound string) (*Address, error) {
		return nil, &node.ConfigError{Field: "address", Value: Redact(text), Bound: bound}
	}
	if several(text) {
		return fail("one address: separate addresses by a comma")
	}
	if !strings.Contains(text, "://") {
		if _, err := ParseAddress("redis://" + text); err == nil && !strings.Contains(text, "@") {
			return fail(fmt.Sprintf("redis://%s, or rediss://%s with TLS", text, text))
		}
		return fail(forms)
	}
	parts, err := nodeaddress.Parse(text)
	a := &Address{Kind: Single, Username: parts.User, Password: parts.Password}
	transport, kind, special := strings.Cut(parts.Scheme, "+")
	if a.secure = transport == "rediss"; !a.secure && transport != "redis" {
		return fail(forms)
	}
	if special {
		a.Kind = Kind(kind)
	}
	if err != nil {
		return fail("an address whose user, password and path are URL-encoded: " + forms)
	}
	path := strings.Split(strings.Trim(parts.RawPath, "/"), "/")
	port := "6379"
	switch a.Kind {
	case Single:
	case Sentinel:
		port = "26379"
		a.Master, err = url.PathUnescape(path[0])
		path = path[1:]
		if err != nil || a.Master == "" || !utf8.ValidString(a.Master) || strings.ContainsFunc(a.Master, unicode.IsControl) {
			return fail("redis+sentinel://host+host/master, with the name of the master")
		}
	case Cluster:
		if path[0] != "" {
			return fail("redis+cluster://host+host, with no database: a cluster has one only")
		}
	default:
		return fail(forms)
	}
	if len(path) > 1 {
		return fail(forms)
	}
	if len(path) == 1 && path[0] != "" {
		if a.Database, err = strconv.Atoi(path[0]); err != nil || a.Database < 0 || a.Database > 65535 {
			return fail("an address with a database from 0 to 65535")
		}
	}
	var ok bool
	if a.Hosts, ok = parts.Servers(port); !ok {
		return fail("an address whose hosts are host:port, with a port from 1 to 65535")
	}
	if a.Kind == Single && len(a.Hosts) > 1 {
		return fail("an address with one host; several are for redis+sentinel:// and redis+cluster://")
	}
	if err := a.parameters(parts); err != nil {
		return fail(err.Error())
	}
	return a, nil
}

// several reports whether a text is more than one address, with spaces between
// them.
func several(text string) bool {
	fields := strings.Fields(text)
	for i, f := range fields {
		if _, ok := nodeaddress.HostPort(f, "6379"); i > 0 && !ok && !strings.Contains(f, "://") {
			return false
		}
	}
	return len(fields) > 1
}

// parameters reads the part after the question mark.
func (a *Address) parameters(parts *nodeaddress.Address) (err error) {
	for key, value := range parts.Parameters {
		if strings.HasPrefix(key, "tls_") && !a.secure {
			return fmt.Errorf("one that begins with rediss, since it sets %s", key)
		}
		switch key {
		case "sentinel_user":
			a.SentinelUsername = value
		case "sentinel_password":
			a.SentinelPassword = value
		case "caller_reads":
			if value != "on" && value != "off" {
				return errors.New("one whose caller_reads is on or off")
			}
			a.NoCallerReads = value == "off"
		case "tls_ca", "tls_cert", "tls_key", "tls_server_name":
		default:
			return fmt.Errorf("one without the unknown parameter %q", key)
		}
	}
	if !a.secure {
		return nil
	}
	var wrong string
	switch a.TLS, wrong, err = parts.TLS(); {
	case wrong == "tls_ca" && err == nil:
		return fmt.Errorf("one whose tls_ca holds a certificate: %s does not", parts.Parameters[wrong])
	case wrong == "tls_ca":
		return fmt.Errorf("one whose tls_ca can be read: %w", err)
	case wrong != "":
		return fmt.Errorf("one whose tls_cert and tls_key belong together: %w", err)
	}
	return nil
}

// String returns the address without user, password and parameters.
func (a *Address) String() string {
	s := "redis"
	if a.secure {
		s = "rediss"
	}
	if a.Kind != Single {
		s += "+" + string(a.Kind)
	}
	s += "://" + strings.Join(a.Hosts, "+")
	if a.Master != "" {
		s += "/" + url.PathEscape(a.Master)
	}
	if a.Database != 0 {
		s += "/" + strconv.Itoa(a.Database)
	}
	return s
}

// Redact returns an address as it was written, without what may be secret.
func Redact(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		// There may be a password before an @, even in a text that is no
		// address.
		if i := strings.LastIndex(text, "@"); i >= 0 {
			return "…" + text[i:]
		}
		return text
	}
	// A password may contain a slash or a question mark that was not encoded:
	// everything up to the last @ is removed.
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = "…" + rest[i:]
	}
	rest, _, query := strings.Cut(rest, "?")
	if query {
		rest += "?…"
	}
	return scheme + "://" + rest
}

// ParseAddresses reads several addresses and rejects one that occurs twice.
func ParseAddresses(texts []string) ([]*Address, error) {
	var list []*Address
	seen := map[string]int{}
	for i, text := range texts {
		a, err := ParseAddress(text)
		if err != nil {
			return nil, err
		}
		if j, twice := seen[a.String()]; twice {
			return nil, &node.ConfigError{Field: fmt.Sprintf("addresses[%d]", i), Value: a.String(),
				Bound: fmt.Sprintf("another than addresses[%d]", j), Problem: "duplicate address " + a.String()}
		}
		seen[a.String()] = i
		list = append(list, a)
	}
	return list, nil
}
