//go:build unix

package servertest

import (
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// NewProxy returns a proxy to a server, ended with the test.
func NewProxy(t testing.TB, s interface{ Addr() string }) *Proxy {
	t.Helper()
	p, err := OpenProxy(s.Addr())
	check.Must(t, err)
	t.Cleanup(p.Close)
	return p
}

// NewProxies returns a proxy to each server, and their addresses.
func NewProxies(t testing.TB, servers []*Server) (proxies []*Proxy, urls []string) {
	t.Helper()
	for _, s := range servers {
		p := NewProxy(t, s)
		proxies, urls = append(proxies, p), append(urls, p.URL())
	}
	return proxies, urls
}
