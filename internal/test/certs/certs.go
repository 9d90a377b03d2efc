// Package certs makes certificates for servers of tests.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
)

// Authority signs certificates, into files of one folder.
type Authority struct {
	Dir  string
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New returns an authority. Its own certificate is called ca.
func New(t testing.TB) *Authority {
	t.Helper()
	return start(t, &x509.Certificate{})
}

// SelfSigned returns the files of a certificate for a host, an address or a name, and of
// its key.
func SelfSigned(t testing.TB, host string) (cert, key string) {
	t.Helper()
	c := &x509.Certificate{}
	if ip := net.ParseIP(host); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{host}
	}
	a := start(t, c)
	return a.File("ca"), a.File("ca-key")
}

func start(t testing.TB, c *x509.Certificate) *Authority {
	t.Helper()
	c.Subject, c.IsCA, c.BasicConstraintsValid = pkix.Name{CommonName: "redlatch test"}, true, true
	c.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
	a := &Authority{t: t, Dir: t.TempDir()}
	a.Sign("ca", c)
	return a
}

// File returns the path of a certificate or a key.
func (a *Authority) File(name string) string { return filepath.Join(a.Dir, name+".pem") }

// Sign makes a certificate and its key, called name and name-key; for an hour,
// unless the template says otherwise.
func (a *Authority) Sign(name string, c *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.Must(a.t, err)
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	c.NotBefore = time.Now().Add(-24 * time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	check.Must(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check.Must(a.t, err)
	for file, block := range map[string]*pem.Block{
		a.File(name):          {Type: "CERTIFICATE", Bytes: der},
		a.File(name + "-key"): {Type: "PRIVATE KEY", Bytes: private},
	} {
		check.Must(a.t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	if a.cert == nil {
		a.key = key
		a.cert, err = x509.ParseCertificate(der)
		check.Must(a.t, err)
	}
}
