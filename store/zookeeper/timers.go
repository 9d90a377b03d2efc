package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// This file has timers. A timer is an ephemeral znode of a session of its own, which
// ends because nobody keeps it alive. Closing the session would end the timer early,
// and with it a lock that is held. So a timer does not use the client, which closes its
// sessions and hides the timeout that the server has granted. The few messages of the
// protocol that it takes are here, and none that closes.

// StartTimer starts a timer as a child of its row.
func (s *store) StartTimer(ctx context.Context, name, id string, d time.Duration) (bool, error) {
	ms := (d + time.Millisecond - 1) / time.Millisecond
	if ms > math.MaxInt32 {
		return false, nil
	}
	c, granted, err := s.startSession(ctx, ms*time.Millisecond)
	if err != nil {
		return false, err
	}
	defer c.Close() // the connection: the session goes on without it
	if granted < ms*time.Millisecond {
		return false, nil
	}
	err = s.createEphemeral(c, s.timer(name, id))
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil // there is no such row
	}
	return err == nil, explain(err)
}

// dialTimer connects to a server, for no longer than the context lasts.
func (s *store) dialTimer(ctx context.Context, server string) (net.Conn, error) {
	limit := time.Now().Add(s.opts.Session)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(limit) {
		limit = deadline
	}
	c, err := s.dial("tcp", server, time.Until(limit))
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(limit)
}

// startSession connects to the server of the store, as a session of its own. It returns
// the timeout that the server has granted.
func (s *store) startSession(ctx context.Context, timeout time.Duration) (net.Conn, time.Duration, error) {
	conn, err := s.session(ctx)
	if err != nil {
		return nil, 0, err
	}
	c, err := s.dialTimer(ctx, conn.Server())
	if err != nil {
		return nil, 0, err
	}
	var m message
	m.int(0)                                 // the protocol's version
	m.long(0)                                // no zxid was seen
	m.int(int32(timeout / time.Millisecond)) // what is wanted
	m.long(0)                                // a new session
	m.bytes(make([]byte, 16))                // and its password
	answer, err := m.exchange(c)
	if err == nil && binary.BigEndian.Uint64(answer[8:]) == 0 {
		err = errAnswer
	}
	if err != nil {
		c.Close()
		return nil, 0, err
	}
	return c, time.Duration(int32(binary.BigEndian.Uint32(answer[4:]))) * time.Millisecond, nil
}

// createEphemeral creates a znode that ends with its session.
func (s *store) createEphemeral(c net.Conn, path string) error {
	if err := s.login(c); err != nil {
		return err
	}
	var m message
	m.int(1) // the number of the request
	m.int(1) // create
	m.bytes([]byte(path))
	m.bytes(nil)
	m.int(int32(len(s.acl)))
	for _, a := range s.acl {
		m.int(a.Perms)
		m.bytes([]byte(a.Scheme))
		m.bytes([]byte(a.ID))
	}
	m.int(zk.FlagEphemeral)
	return m.request(c)
}

// login authenticates, if there is a user.
func (s *store) login(c net.Conn) error {
	if s.opts.User == "" {
		return nil
	}
	var m message
	m.int(-4)  // the number of a request to authenticate
	m.int(100) // which it is
	m.int(0)
	m.bytes([]byte("digest"))
	m.bytes([]byte(s.opts.digest()))
	return m.request(c)
}

// DropTimers removes timers. Their sessions end later, by themselves.
func (s *store) DropTimers(ctx context.Context, name string, ids []string) error {
	conn, err := s.session(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err := within(ctx, func() (struct{}, error) { return struct{}{}, conn.Delete(s.timer(name, id), -1) })
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return explain(err)
		}
	}
	return nil
}

var errAnswer = errors.New("the server's answer is none of ZooKeeper's")

// message is one of ZooKeeper's protocol.
type message []byte

func (m *message) int(i int32)    { *m = binary.BigEndian.AppendUint32(*m, uint32(i)) }
func (m *message) long(i int64)   { *m = binary.BigEndian.AppendUint64(*m, uint64(i)) }
func (m *message) bytes(b []byte) { m.int(int32(len(b))); *m = append(*m, b...) }

func (m *message) send(c net.Conn) error {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(*m))), *m...))
	return err
}

// receive returns the next message.
func receive(c io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n < 16 || n > 1<<16 {
		return nil, errAnswer
	}
	answer := make([]byte, n)
	_, err := io.ReadFull(c, answer)
	return answer, err
}

// exchange sends the message and returns the next one.
func (m *message) exchange(c net.Conn) ([]byte, error) {
	if err := m.send(c); err != nil {
		return nil, err
	}
	return receive(c)
}

// codes are errors of the server.
var codes = map[int32]error{-101: zk.ErrNoNode, -102: zk.ErrNoAuth, -110: zk.ErrNodeExists, -112: zk.ErrSessionExpired, -114: zk.ErrInvalidACL, -115: zk.ErrAuthFailed}

// request sends the message, and returns the error of the answer.
func (m *message) request(c net.Conn) error {
	answer, err := m.exchange(c)
	if err != nil {
		return err
	}
	return failure(answer)
}

// failure returns the error of an answer.
func failure(answer []byte) error {
	code := int32(binary.BigEndian.Uint32(answer[12:]))
	if code == 0 {
		return nil
	}
	if err, ok := codes[code]; ok {
		return err
	}
	return fmt.Errorf("the server refuses it: error %d", code)
}
