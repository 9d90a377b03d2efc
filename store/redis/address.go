package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

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
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		if _, err := ParseAddress("redis://" + text); err == nil && !strings.Contains(text, "@") {
			return fail(fmt.Sprintf("redis://%s, or rediss://%s with TLS", text, text))
		}
		return fail(forms)
	}
	a := &Address{}
	transport, kind, special := strings.Cut(scheme, "+")
	switch transport {
	case "redis":
	case "rediss":
		a.secure = true
	default:
		return fail(forms)
	}
	a.Kind = Single
	if special {
		a.Kind = Kind(kind)
	}
	// Several hosts are no URL: they are taken out before the rest is read.
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	userinfo, hosts := "", authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		userinfo, hosts = authority[:i+1], authority[i+1:]
	}
	u, err := url.Parse("redis://" + userinfo + "host" + tail)
	if err != nil {
		return fail("an address whose user, password and path are URL-encoded: " + forms)
	}
	if u.User != nil {
		a.Username = u.User.Username()
		a.Password, _ = u.User.Password()
	}
	path := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
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
	for host := range strings.SplitSeq(hosts, "+") {
		hp, ok := hostPort(host, port)
		if !ok {
			return fail("an address whose hosts are host:port, with a port from 1 to 65535")
		}
		a.Hosts = append(a.Hosts, hp)
	}
	if a.Kind == Single && len(a.Hosts) > 1 {
		return fail("an address with one host; several are for redis+sentinel:// and redis+cluster://")
	}
	if err := a.parameters(u.Query()); err != nil {
		return fail(err.Error())
	}
	return a, nil
}

// several reports whether a text is more than one address, with spaces between
// them.
func several(text string) bool {
	fields := strings.Fields(text)
	for i, f := range fields {
		if _, ok := hostPort(f, "6379"); i > 0 && !ok && !strings.Contains(f, "://") {
			return false
		}
	}
	return len(fields) > 1
}

// hostPort adds the port where it is missing.
func hostPort(s, port string) (string, bool) {
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		host, p = s, port
		if inner, ok := strings.CutPrefix(s, "["); ok {
			host, ok = strings.CutSuffix(inner, "]")
			if !ok {
				return "", false
			}
		} else if strings.Contains(s, ":") {
			return "", false
		}
	}
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", false
		}
	} else if !plainHost(host) {
		return "", false
	}
	n, err := strconv.Atoi(p)
	if err != nil || n < 1 || n > 65535 {
		return "", false
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), true
}

// plainHost lets through what a resolver may know: letters, digits and the
// marks between them.
func plainHost(host string) bool {
	for _, r := range host {
		if !strings.ContainsRune("-._", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return host != ""
}

// parameters reads the part after the question mark.
func (a *Address) parameters(q url.Values) error {
	if a.secure {
		a.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	for key, values := range q {
		value := values[len(values)-1]
		if strings.HasPrefix(key, "tls_") && a.TLS == nil {
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
		case "tls_server_name":
			a.TLS.ServerName = value
		case "tls_ca":
			pem, err := os.ReadFile(value)
			if err != nil {
				return fmt.Errorf("one whose tls_ca can be read: %w", err)
			}
			a.TLS.RootCAs = x509.NewCertPool()
			if !a.TLS.RootCAs.AppendCertsFromPEM(pem) {
				return fmt.Errorf("one whose tls_ca holds a certificate: %s does not", value)
			}
		case "tls_cert", "tls_key":
			// Read together, below.
		default:
			return fmt.Errorf("one without the unknown parameter %q", key)
		}
	}
	if cert, key := q.Get("tls_cert"), q.Get("tls_key"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("one whose tls_cert and tls_key belong together: %w", err)
		}
		a.TLS.Certificates = []tls.Certificate{pair}
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
