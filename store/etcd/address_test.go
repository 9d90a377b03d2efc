package etcd_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/etcd"
)

// certificate returns the files of a certificate for 127.0.0.1, and its key.
func certificate(t testing.TB) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	check.Must(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	check.Must(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	check.Must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	check.Must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o644))
	return cert, key
}

func TestAddresses(t *testing.T) {
	for address, name := range map[string]string{
		"etcd://a":                                 "etcd://a:2379/redlatch",
		"etcd://b:1+a:2+c/ops/locks":               "etcd://a:2+b:1+c:2379/ops/locks",
		"etcd://user:pass%40word@a/x?poll=true":    "etcd://a:2379/x",
		"etcds://[2001:db8::7]:2380+[2001:db8::8]": "etcd://[2001:db8::7]:2380+[2001:db8::8]:2379/redlatch",
	} {
		n, err := node.Open(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if n.String() != name {
			t.Errorf("%s is %s, want %s", address, n, name)
		}
		n.Close()
	}
	for _, address := range []string{
		"etcd:", "etcd://", "etcd://a++b", "etcd://:secret@a", "etcd://a?poll=secret", "etcd://a?tls_ca=secret", "etcds://a?tls_ca=/missing",
		"etcds://a?tls_cert=/missing", "etcd://a/%zz", "etcd://a?%zz", "http://a",
	} {
		if _, err := etcd.Open(address, nil); !errors.Is(err, node.ErrConfig) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := etcd.From(nil, nil); !errors.Is(err, node.ErrConfig) {
		t.Errorf("no client: %v", err)
	}
}
