//go:build unix

package redlatchcertmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/big"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/redlatch/redlatch"
	redlatchcertmagic "github.com/redlatch/redlatch/adapters/certmagic"
	"github.com/redlatch/redlatch/internal/test/processes"
)

// TestMain turns the test binary into the program below when a test starts it.
func TestMain(m *testing.M) { processes.Main(m, program) }

var (
	nodes  = flag.String("nodes", "", "addresses of the nodes; empty for no locks at all")
	dir    = flag.String("dir", "", "where certificates are stored")
	hold   = flag.Duration("hold", 0, "how long the issuer takes")
	renew  = flag.Int("renew", 0, "how often to renew the certificate after it was obtained")
	domain = "example.com"
	ttl    = 2 * time.Second
)

// program obtains a certificate with certmagic, and renews it.
func program() {
	log.SetFlags(0)
	flag.Parse()
	if err := manage(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func manage(ctx context.Context) error {
	storage, err := openStorage()
	if err != nil {
		return err
	}
	var magic *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return magic, nil },
		Logger:           zap.NewNop(),
	})
	defer cache.Stop()
	magic = certmagic.New(cache, certmagic.Config{
		Storage: storage, Issuers: []certmagic.Issuer{issuer{}}, Logger: zap.NewNop(), DisableARI: true,
	})
	if err := magic.ObtainCertSync(ctx, domain); err != nil {
		return err
	}
	fmt.Println("obtained")
	for range *renew {
		if err := magic.RenewCertSync(ctx, domain, true); err != nil {
			return err
		}
		fmt.Println("renewed")
	}
	return nil
}

// openStorage returns files that are locked by redlatch, or not at all.
func openStorage() (certmagic.Storage, error) {
	files := &certmagic.FileStorage{Path: filepath.Join(*dir, "certificates")}
	if *nodes == "" {
		return unlocked{files}, nil
	}
	// snippet: wrap
	locks, err := redlatch.Open(*nodes, nil)
	if err != nil {
		return nil, err
	}
	storage, err := redlatchcertmagic.Wrap(files, locks, &redlatchcertmagic.Options{TTL: ttl})
	// end snippet
	return storage, err
}

// unlocked is a storage that locks nothing.
type unlocked struct{ certmagic.Storage }

func (unlocked) Lock(context.Context, string) error   { return nil }
func (unlocked) Unlock(context.Context, string) error { return nil }

// issuer is a certificate authority. It fails if another process issues at the
// same time.
type issuer struct{}

func (issuer) IssuerKey() string { return "authority" }

func (issuer) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	f, err := os.OpenFile(filepath.Join(*dir, "issuer"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The system frees this lock when the process ends, however it ends.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.New("two issue at the same time")
	}
	fmt.Println("issuing")
	time.Sleep(*hold)
	return sign(csr)
}

// sign returns a certificate of an authority that is made for it.
func sign(csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	authority := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: csr.Subject, DNSNames: csr.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, csr.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}
