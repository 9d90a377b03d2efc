//go:build unix

package servertest

import "testing"

// NewProxy returns a proxy to a server, ended with the test.
func NewProxy(t testing.TB, s interface{ Addr() string }) *Proxy {
	t.Helper()
	p, err := OpenProxy(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
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
