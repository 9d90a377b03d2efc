package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/store/redis"
)

// nodesPage turns the text of redlatch help nodes into the page: lines are
// joined to paragraphs, and indented text becomes a block of code.
func nodesPage() string {
	var b strings.Builder
	b.WriteString("## Addresses\n\n`redlatch help nodes` prints this section.\n")
	for part := range strings.SplitSeq(nodesHelp, "\n\n") {
		lines := strings.Split(part, "\n")
		if strings.HasPrefix(part, "  ") {
			b.WriteString("\n```text\n" + strings.ReplaceAll(strings.TrimPrefix(part, "  "), "\n  ", "\n") + "\n```\n")
			continue
		}
		b.WriteString("\n" + strings.Join(lines, " ") + "\n")
	}
	return b.String()
}

func TestPageOfAddressesIsTheHelpText(t *testing.T) {
	const path = "../../docs/stores.md"
	page, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(page), nodesPage()) {
		t.Errorf("%s does not end with what nodesHelp says: %v; it should be:\n%s", path, err, nodesPage())
	}
}

func TestAddressesOfTheHelpTextAreUnderstood(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir)
	seen := 0
	for line := range strings.Lines(nodesHelp) {
		address, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "  ")
		if !indented || kindOf(address) != "redis" {
			continue
		}
		seen++
		if _, err := redis.ParseAddress(strings.ReplaceAll(address, "/etc/redlatch", dir)); err != nil {
			t.Error(err)
		}
	}
	if seen < 12 {
		t.Errorf("the text has %d addresses", seen)
	}
	for _, parameter := range []string{"tls_ca", "tls_cert", "tls_key", "tls_server_name", "sentinel_user", "sentinel_password", "caller_reads"} {
		if !strings.Contains(nodesHelp, parameter+"=") {
			t.Errorf("the text shows no %s", parameter)
		}
	}
}

// writeCertificate writes the files that the addresses of the text name.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{
		"ca.pem": cert, "client.pem": cert, "client-key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
}
