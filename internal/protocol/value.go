package protocol

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The value of a claim is 32 hexadecimal digits, drawn at random, a colon, and
// the owner: host/pid/label.
const valueDigits = 32

// MaxOwner is the longest owner, in bytes.
const MaxOwner = 400

// NewValue returns the value of a claim.
func NewValue(random [valueDigits / 2]byte, owner string) string {
	var digits [valueDigits]byte
	hex.Encode(digits[:], random[:])
	return string(digits[:]) + ":" + owner
}

// OwnerOf returns the owner that a value names, and whether it is the value of
// a claim at all. Any client may have set it, and it is shown to users: an
// owner that cannot be printed is none.
func OwnerOf(value string) (string, bool) {
	if len(value) <= valueDigits || value[valueDigits] != ':' || !Printable(value[valueDigits+1:], 0, MaxOwner) {
		return "", false
	}
	if _, err := hex.DecodeString(value[:valueDigits]); err != nil {
		return "", false
	}
	return value[valueDigits+1:], true
}

// IsLease reports whether a value is that of a claim.
func IsLease(value string) bool {
	_, ok := OwnerOf(value)
	return ok
}

// Printable reports whether a text has from least to most bytes, and can be
// shown, logged and typed.
func Printable(s string, least, most int) bool {
	return least <= len(s) && len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
