package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
)

// minPagePassword is the shortest password of a page: guessing it is slow, and
// must take too long.
const minPagePassword = 12

// protection returns what guards the page, and its TLS settings, nil for none.
// Off loopback there must be both, or a proxy in place of TLS.
func (f *uiFlags) protection(addr *net.TCPAddr) (func(http.Handler) http.Handler, *tls.Config, error) {
	switch outside := !addr.IP.IsLoopback(); {
	case (f.cert == "") != (f.key == ""):
		return nil, nil, usageError(errors.New("--tls-cert and --tls-key are given together, or not at all"), "give both files")
	case f.cert != "" && f.behindProxy:
		return nil, nil, usageError(errors.New("--behind-proxy and --tls-cert cannot be combined"), "leave out the one that does not do TLS")
	case outside && f.pagePassword == "":
		return nil, nil, usageError(fmt.Errorf("--listen is %q, which is not loopback: everybody who can reach it would see the locks", f.listen),
			"give --page-password-file, or listen on 127.0.0.1")
	case outside && f.cert == "" && !f.behindProxy:
		return nil, nil, usageError(fmt.Errorf("--listen is %q, which is not loopback: the password could be read on the network", f.listen),
			"give --tls-cert and --tls-key, or --behind-proxy if a proxy does TLS")
	}
	protect := func(h http.Handler) http.Handler { return h }
	if f.pagePassword != "" {
		password, err := readPagePassword(f.pagePassword)
		if err != nil {
			return nil, nil, err
		}
		protect = newGate(password).protect
	}
	if f.cert == "" {
		return protect, nil, nil
	}
	cert, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, nil, usageError(fmt.Errorf("--tls-cert %s and --tls-key %s cannot be used: %w", f.cert, f.key, err), "give a certificate and its key, as PEM")
	}
	return protect, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// readPagePassword reads the password of the page. Errors never show it.
func readPagePassword(path string) (string, error) {
	hint := fmt.Sprintf("give a file whose first line is a password of %d characters or more", minPagePassword)
	line, err := firstLine(path)
	if err != nil {
		return "", usageError(fmt.Errorf("--page-password-file cannot be read: %w", err), hint)
	}
	if n := len([]rune(line)); n < minPagePassword {
		return "", usageError(&redlatch.ConfigError{Field: "--page-password-file", Value: path,
			Bound: fmt.Sprintf("a file whose first line has %d characters or more; it has %d", minPagePassword, n)}, hint)
	}
	return line, nil
}

// gate asks for the password, and slows down guesses from an address.
type gate struct {
	password [sha256.Size]byte
	now      func() time.Time

	mu sync.Mutex
	// guesses has when an address has all its guesses back: each wrong one moves
	// that by guessEvery.
	guesses map[netip.Prefix]time.Time
}

const (
	// freeGuesses is how many guesses an address has, and guessEvery after what
	// time it gets one back.
	freeGuesses = 10
	guessEvery  = 5 * time.Second
	// maxGuessers limits the addresses that are remembered.
	maxGuessers = 10000
)

func newGate(password string) *gate {
	return &gate{password: sha256.Sum256([]byte(password)), now: time.Now, guesses: map[netip.Prefix]time.Time{}}
}

// protect asks for the password before the page is served.
func (g *gate) protect(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, given := r.BasicAuth()
		switch {
		case given && !g.may(r.RemoteAddr):
			w.Header().Set("Retry-After", "5")
			g.refuse(w, http.StatusTooManyRequests, "too many wrong passwords from this address")
		case !given || !g.right(password):
			if given {
				g.wrong(r.RemoteAddr)
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="redlatch", charset="UTF-8"`)
			g.refuse(w, http.StatusUnauthorized, "the page needs its password; the user name does not matter")
		default:
			page.ServeHTTP(w, r)
		}
	})
}

func (g *gate) refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Frame-Options", "DENY")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	http.Error(w, text, status)
}

// right compares passwords in a time that does not depend on them.
func (g *gate) right(password string) bool {
	sum := sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(sum[:], g.password[:]) == 1
}

// may reports whether an address may guess.
func (g *gate) may(remote string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.guesses[network(remote)].Sub(g.now()) < freeGuesses*guessEvery
}

// wrong notes a wrong guess.
func (g *gate) wrong(remote string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, from := g.now(), network(remote)
	if len(g.guesses) >= maxGuessers {
		maps.DeleteFunc(g.guesses, func(_ netip.Prefix, back time.Time) bool { return back.Before(now) })
	}
	if len(g.guesses) >= maxGuessers {
		clear(g.guesses)
	}
	back := g.guesses[from]
	if back.Before(now) {
		back = now
	}
	g.guesses[from] = back.Add(guessEvery)
}

// network returns the address that guesses are counted by: of IPv6 the first
// half, since the other half is free to choose.
func network(remote string) netip.Prefix {
	addr, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := addr.Addr().Unmap(), 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.WithZone("").Prefix(bits)
	return p
}
