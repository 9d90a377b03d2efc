package main

import (
	"crypto/x509"
	"os"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/certs"
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
	files := certs.New(t)
	files.Sign("client", &x509.Certificate{})
	seen := 0
	for line := range strings.Lines(nodesHelp) {
		address, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "  ")
		if !indented || kindOf(address) != "redis" {
			continue
		}
		seen++
		if _, err := redis.ParseAddress(strings.ReplaceAll(address, "/etc/redlatch", files.Dir)); err != nil {
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
