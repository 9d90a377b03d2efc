// Package nodeaddress takes addresses of nodes apart. Each store says itself what is
// wrong with one, without its password.
package nodeaddress

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"unicode"
)

// Address is SCHEME://[USER[:PASSWORD]@]HOST[:PORT][+HOST[:PORT]…][/PATH][?PARAMETERS].
type Address struct {
	Scheme         string // in lower case
	User, Password string
	Hosts          []string // as they are written
	Path, RawPath  string   // from the slash on; RawPath as it is written
	Parameters     map[string]string
}

// Cut cuts an address in four, as it is written: the scheme, the user and the password
// with the @, the hosts, and the rest.
func Cut(address string) (scheme, user, hosts, rest string) {
	scheme, hosts, _ = strings.Cut(address, "://")
	if i := strings.IndexAny(hosts, "/?#"); i >= 0 {
		hosts, rest = hosts[:i], hosts[i:]
	}
	i := strings.LastIndex(hosts, "@") + 1
	return scheme, hosts[:i], hosts[i:], rest
}

var errEncoding = errors.New("it is not URL-encoded")

// Parse reads an address. Of one that is not URL-encoded it returns the scheme alone, and
// an error. Of a parameter that is there twice the last counts.
func Parse(address string) (*Address, error) {
	scheme, user, hosts, rest := Cut(address)
	path, query, _ := strings.Cut(rest, "?")
	name, password, _ := strings.Cut(strings.TrimSuffix(user, "@"), ":")
	a := &Address{Scheme: strings.ToLower(scheme), Hosts: strings.Split(hosts, "+"), RawPath: path, Parameters: map[string]string{}}
	var errs [4]error
	var values url.Values
	a.User, errs[0] = url.PathUnescape(name)
	a.Password, errs[1] = url.PathUnescape(password)
	a.Path, errs[2] = url.PathUnescape(path)
	values, errs[3] = url.ParseQuery(query)
	for key, all := range values {
		a.Parameters[key] = all[len(all)-1]
	}
	if errors.Join(errs[:]...) != nil || strings.Contains(rest, "#") || strings.ContainsFunc(address, unicode.IsControl) {
		return &Address{Scheme: a.Scheme}, errEncoding
	}
	return a, nil
}

// Servers returns the hosts as HOST:PORT; false if one of them is none.
func (a *Address) Servers(defaultPort string) (servers []string, ok bool) {
	for _, host := range a.Hosts {
		server, ok := HostPort(host, defaultPort)
		if !ok {
			return nil, false
		}
		servers = append(servers, server)
	}
	return servers, true
}

// HostPort returns a host as HOST:PORT; false if it is none. It lets through what a
// resolver may know.
func HostPort(s, defaultPort string) (string, bool) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port, err = net.SplitHostPort(s + ":" + defaultPort)
	}
	n, wrong := strconv.Atoi(port)
	_, notIP := netip.ParseAddr(host)
	odd := func(r rune) bool {
		return !strings.ContainsRune("-._", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if err != nil || wrong != nil || n < 1 || n > 65535 || host == "" || notIP != nil && strings.ContainsFunc(host, odd) {
		return "", false
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), true
}

// TLS returns settings by the parameters tls_ca, tls_cert and tls_key, which name PEM
// files, and tls_server_name. wrong is the parameter that cannot be used; err is nil
// if that is for want of a certificate.
func (a *Address) TLS() (c *tls.Config, wrong string, err error) {
	c = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.Parameters["tls_server_name"]}
	if file := a.Parameters["tls_ca"]; file != "" {
		pem, err := os.ReadFile(file)
		if c.RootCAs = x509.NewCertPool(); err != nil || !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, "tls_ca", err
		}
	}
	if cert, key := a.Parameters["tls_cert"], a.Parameters["tls_key"]; cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, "tls_cert", err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, "", nil
}
