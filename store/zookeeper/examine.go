package zookeeper

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node/risk"
)

var _ risk.Examiner = (*Node)(nil)

// longestAsked is the session timeout that an examination asks for. usualTTL is a time
// that a lock usually has at most.
const (
	longestAsked = time.Hour
	usualTTL     = 30 * time.Second
)

// Examine checks the servers and how long their sessions may last, and tries the
// requests of a lock.
func (n *Node) Examine(ctx context.Context, exam risk.Exam) ([]risk.Finding, error) {
	if _, _, err := n.Identity(ctx); err != nil {
		return nil, err
	}
	found := n.Rights(ctx, exam, "give all clients the user and password that the znodes were created with")
	s := n.store
	servers := s.servers
	if len(servers) == 0 {
		servers = []string{s.conn.Server()}
	}
	leads, down := 0, 0 // of the servers
	for _, server := range servers {
		switch mode, err := s.mode(ctx, server); {
		case err != nil:
			down++
			found.Add(risk.Warning, "servers", fmt.Sprintf("%s does not answer: %v", server, err), "another failure may lose the quorum", "start it, or correct the address")
		case mode == "standalone":
			leads++
			found.Add(risk.Advice, "servers", server+" is a server of its own", "single point of failure", "run three servers as an ensemble")
		case mode == "leader":
			leads++
		}
	}
	if len(servers) > 1 && down == 0 {
		found.Add(risk.Fine, "servers", fmt.Sprintf("%d servers answer", len(servers)), "", "")
	}
	if leads > 1 {
		found.Add(risk.Danger, "servers", "the address has servers of several ensembles", "clients that use different ones do not exclude each other", "give the address of one ensemble")
	}
	longest, err := s.longestTimer(ctx)
	switch {
	case err != nil:
		found.Add(risk.Warning, "timers", "cannot open a session: "+err.Error(), "callers that do not wait get the lock of a crashed holder late or never", "allow more connections (maxClientCnxns)")
	case longest < usualTTL:
		found.Add(risk.Advice, "timers", fmt.Sprintf("sessions last %v at the most", longest),
			"callers that do not wait may never get the lock of a crashed holder whose TTL is longer", "raise maxSessionTimeout, or use a shorter TTL")
	default:
		found.Add(risk.Fine, "timers", fmt.Sprintf("up to %v", longest), "", "")
	}
	return found.All, nil
}

// mode asks a server what it is.
func (s *store) mode(ctx context.Context, server string) (string, error) {
	c, err := s.dialTimer(ctx, server)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "srvr"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(c, 4096))
	if _, after, ok := strings.Cut(string(answer), "Mode: "); ok {
		mode, _, _ := strings.Cut(after, "\n")
		return mode, nil
	}
	if err == nil && strings.Contains(string(answer), "not currently serving") {
		err = ErrNotServing
	}
	return "", err // a server that does not answer this question is none to complain about
}

// longestTimer returns how long a session may last. The one that it opens ends by
// itself.
func (s *store) longestTimer(ctx context.Context) (time.Duration, error) {
	c, granted, err := s.startSession(ctx, longestAsked)
	if err == nil {
		c.Close()
	}
	return granted, err
}
