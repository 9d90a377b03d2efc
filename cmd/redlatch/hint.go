package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/redis"
)

// Hints for what is wrong with one node. They hold for every kind of node unless
// they name one.
const (
	hintPassword = "set the password: $REDLATCH_PASSWORD or --password-file, and the user in the address"
	hintWrong    = "check the user in the address and the password ($REDLATCH_PASSWORD, --password-file)"
	hintACL      = `give the user the rights that locks need: "The ACL of a lock user" in docs/operations.md`
	hintRights   = "give the user the rights that redlatch schema prints"
	hintDatabase = "check the database in the address"
	hintRefused  = "start the server, or check host and port of the address"
	hintHost     = "check the host name in the address, and the name service of this machine"
	hintTimeout  = "check that the server is not frozen, and that no firewall drops the connection"
	hintTLS      = "the server uses TLS on this port: write rediss:// in the address"
	hintNoTLS    = "the server does not use TLS on this port: write redis:// in the address, or give its TLS port"
	hintCert     = "check the certificate: tls_ca and tls_server_name in the address (redlatch help nodes)"
	hintSQLTLS   = "the server does not use TLS: change sslmode or tls in the address, or set the server up for it"
)

// hintMajority is for nodes that fail for several reasons, or unknown ones.
const hintMajority = "check that a majority of the nodes is up and can be reached from here"

// quorumHint says what to do about a round without a quorum: the hint for the
// cause that most nodes have, if it is known.
func quorumHint(err error) string {
	var quorum *redlatch.QuorumError
	if !errors.As(err, &quorum) {
		return hintMajority
	}
	votes, best := map[string]int{}, ""
	known := false
	for _, r := range quorum.Nodes {
		if r.Err == nil {
			continue
		}
		hint, ok := nodeHint(r.Node, r.Err)
		known = known || ok
		if hint == "" {
			continue
		}
		if votes[hint]++; votes[hint] > votes[best] {
			best = hint
		}
	}
	switch {
	case best != "" && len(votes) > 1:
		return best + " (and see the other nodes' errors)"
	case best != "" || known:
		return best
	}
	return hintMajority
}

// denied reports whether so many nodes refuse the password that there is no quorum.
func denied(err error) bool {
	var quorum *redlatch.QuorumError
	if !errors.As(err, &quorum) {
		return false
	}
	n := 0
	for _, r := range quorum.Nodes {
		if hint, _, _ := answerHint(r.Err); hint == hintPassword || hint == hintWrong {
			n++
		}
	}
	return n > len(quorum.Nodes)-quorum.Need
}

// answerHint is the hint for an error with which a server answered. known is true if
// the error itself says so.
func answerHint(err error) (hint string, known, answered bool) {
	var (
		server *redis.ServerError
		state  interface{ SQLState() string }
		number *mysqldriver.MySQLError
	)
	switch {
	case errors.As(err, &server):
		return redisHint(server), server.Hint() != "", true
	case errors.As(err, &state):
		hint = sqlHints[state.SQLState()]
	case errors.As(err, &number):
		hint = mysqlHints[number.Number]
	default:
		return "", false, false
	}
	return hint, hint != "", true
}

// nodeHint says what to do about the error of one node. known is true if the
// error itself says so, or needs no hint.
func nodeHint(name string, err error) (hint string, known bool) {
	var (
		lookup   *net.DNSError
		badCert  *tls.CertificateVerificationError
		noRecord tls.RecordHeaderError
	)
	hint, known, answered := answerHint(err)
	switch {
	case answered:
		return hint, known
	case errors.As(err, &lookup):
		hint = hintHost
	case errors.Is(err, syscall.ECONNREFUSED):
		hint = hintRefused
	case errors.As(err, &badCert):
		hint = hintCert
	case strings.Contains(err.Error(), "server refused TLS connection"), errors.Is(err, mysqldriver.ErrNoTLS):
		hint = hintSQLTLS
	case errors.As(err, &noRecord), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, redlatch.ErrNodeTimeout), errors.Is(err, os.ErrDeadlineExceeded):
		if hint = tlsHint(name); hint == "" && errors.Is(err, redlatch.ErrNodeTimeout) {
			hint = hintTimeout
		}
	}
	return hint, hint != ""
}

// redisHint is the hint for what a Redis server replied; empty if the error says
// what to do.
func redisHint(err *redis.ServerError) string {
	switch {
	case err.Forbidden():
		return hintACL
	case err.Code == "NOAUTH":
		return hintPassword
	case err.Code == "WRONGPASS":
		return hintWrong
	case strings.Contains(err.Text, "DB index is out of range"):
		return hintDatabase
	}
	return ""
}

// sqlHints are the hints for errors of PostgreSQL, and mysqlHints for those of
// MySQL and MariaDB.
var (
	sqlHints   = map[string]string{"28P01": hintWrong, "28000": hintWrong, "3D000": hintDatabase, "42501": hintRights}
	mysqlHints = map[uint16]string{
		1045: hintWrong, 1698: hintWrong, // access denied
		1049: hintDatabase,                                                     // no such database
		1044: hintRights, 1142: hintRights, 1143: hintRights, 1227: hintRights, // no right to the database, the table, a column, an operation
		3159: "the server wants TLS: add tls=true to the address",
	}
)

// tlsProbe limits the look whether a port uses TLS.
const tlsProbe = 500 * time.Millisecond

// tlsHint looks whether the server behind a plain Redis address uses TLS
// although the address does not say so, or the reverse. A server that gets the
// wrong kind of bytes says nothing that would tell. It sends no password.
func tlsHint(name string) string {
	address, err := redis.ParseAddress(name)
	if err != nil || address.Kind != redis.Single {
		return ""
	}
	conn, err := net.DialTimeout("tcp", address.Hosts[0], tlsProbe)
	if err != nil {
		return ""
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(tlsProbe))
	if address.TLS == nil {
		if tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake() == nil {
			return hintTLS
		}
		return ""
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return ""
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil && (line[0] == '+' || line[0] == '-') {
		return hintNoTLS
	}
	return ""
}
