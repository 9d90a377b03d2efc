//go:build unix

package redistest

import (
	"testing"

	"github.com/redlatch/redlatch/internal/test/faultproxy"
)

// Proxy is between a client and a server, and does to their connections what a
// network can do.
type Proxy struct{ *faultproxy.Proxy }

// NewProxy returns a proxy to a server, ended with the test.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	p, err := faultproxy.New(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &Proxy{p}
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

// Target sends new connections to another server.
func (p *Proxy) Target(s *Server) { p.LeadTo(s.Addr()) }
