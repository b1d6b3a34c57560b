// SPDX-License-Identifier: Apache-2.0

package sms

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// session is a connection to a message centre. Both sides send requests and responses.
type session struct {
	conn    net.Conn
	timeout time.Duration
	window  chan struct{} // a token for each request without a response
	done    chan struct{} // closed when the session has ended
	readers sync.WaitGroup

	writing sync.Mutex // held while a unit is written

	mu       sync.Mutex
	sequence uint32
	asked    map[uint32]question // by sequence number
	err      error               // why the session ended
}

// question waits for its answer.
type question struct {
	command uint32
	answer  chan pdu // buffered: the reader never waits
}

func newSession(conn net.Conn, window int, timeout time.Duration) *session {
	s := &session{
		conn: conn, timeout: timeout, window: make(chan struct{}, window),
		done: make(chan struct{}), asked: map[uint32]question{},
	}
	s.readers.Go(s.read)
	return s
}

func (s *session) alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// end ends the session once. Waiting requests return err.
func (s *session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	close(s.done)
	s.conn.Close()
}

// wait returns when no goroutine of the session runs any more.
func (s *session) wait() { s.readers.Wait() }

// ask sends a request and waits for its response. After an error it is unknown whether
// the centre received the request.
func (s *session) ask(ctx context.Context, command uint32, text []byte) (pdu, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case s.window <- struct{}{}:
		defer func() { <-s.window }()
	case <-s.done:
		return pdu{}, s.ended()
	case <-ctx.Done():
		return pdu{}, errors.New("sms: too many requests wait for responses of the message centre")
	}
	q := question{command, make(chan pdu, 1)}
	s.mu.Lock()
	s.sequence = s.sequence%0x7fffffff + 1 // 1 to 0x7FFFFFFF (SMPP 3.4, 5.1.4)
	number := s.sequence
	s.asked[number] = q
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asked, number)
		s.mu.Unlock()
	}()
	if err := s.write(pdu{command: command, sequence: number, body: text}); err != nil {
		return pdu{}, err
	}
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-s.done:
		return pdu{}, s.ended()
	case <-ctx.Done():
		return pdu{}, errors.New("sms: the message centre does not answer")
	}
}

func (s *session) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// write sends one unit. A write error ends the session.
func (s *session) write(p pdu) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.conn.SetWriteDeadline(time.Now().Add(s.timeout))
	if _, err := s.conn.Write(p.bytes()); err != nil {
		err = fmt.Errorf("sms: the connection broke: %w", err)
		s.end(err)
		return err
	}
	return nil
}

// read passes responses to the waiting requests and answers requests of the centre until
// the session ends.
func (s *session) read() {
	in := bufio.NewReader(s.conn)
	for {
		p, err := readPDU(in)
		if err == nil {
			err = s.receive(p)
		}
		if err != nil {
			s.end(fmt.Errorf("sms: the connection broke: %w", err))
			return
		}
	}
}

var errUnbound = errors.New("the message centre ended the session")

// receive handles one unit of the centre.
func (s *session) receive(p pdu) error {
	if p.command&response != 0 {
		s.mu.Lock()
		q, ok := s.asked[p.sequence]
		ok = ok && (p.command == genericNack || p.command == q.command|response)
		if ok {
			delete(s.asked, p.sequence)
		}
		s.mu.Unlock()
		if ok { // otherwise the response came too late
			if p.command == genericNack && p.status == statusOK {
				p.status = statusBadComm // a refusal without a reason must not count as success
			}
			q.answer <- p
		}
		return nil
	}
	answer := pdu{command: p.command | response, sequence: p.sequence}
	switch p.command {
	case enquireLink, unbind:
	case deliverSM:
		answer.body = []byte{0} // message_id, unused (4.6.2). We ask for no receipts
	case alertNotification, outbind:
		return nil // these get no response
	default:
		answer.command, answer.status = genericNack, statusBadComm
	}
	if err := s.write(answer); err != nil {
		return err
	}
	if p.command == unbind {
		return errUnbound
	}
	return nil
}

// keepAlive sends an enquire_link at each pause and ends the session when no response
// comes.
func (s *session) keepAlive(pause time.Duration) {
	s.readers.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-s.done:
				return
			case <-tick.C:
				if _, err := s.ask(context.Background(), enquireLink, nil); err != nil {
					s.end(err)
					return
				}
			}
		}
	})
}
