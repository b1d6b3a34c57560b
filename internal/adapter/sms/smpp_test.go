// SPDX-License-Identifier: Apache-2.0

package sms

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/notify"
	"tamga/internal/judge"
)

// TestCentre checks that a foreign message centre accepts what we send and reads it as we
// meant it.
func TestCentre(t *testing.T) {
	centre := judge.SMPPCentre(t, map[string]uint32{"79260000001": statusInvDest, "79260000002": statusThrottled})
	for _, transmitter := range []bool{false, true} {
		s, err := NewSMPP(SMPPConfig{Address: centre.Address, SystemID: "tamga", Password: "secret12", From: "Tamga", Transmitter: transmitter})
		if err != nil {
			t.Fatal(err)
		}
		from := judge.Short{From: "Tamga", FromTON: 5, FromNPI: 0, To: "79261234567", ToTON: 1, ToNPI: 1, Parts: [][]int{}}
		for _, text := range []string{"Code 123456 @ [x] $_", "Код 123456, ёлка 😀"} {
			m := short
			m.Text = text
			if err := s.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			got := centre.Next()
			want := from
			want.Text, want.Coding = text, got.Coding
			if wantCoding := map[bool]int{true: codingDefault, false: codingUCS2}[strings.HasPrefix(text, "Code")]; got.Coding != wantCoding {
				t.Errorf("coding %d, want %d", got.Coding, wantCoding)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if status := centre.Receipt(); status != 0 {
				t.Errorf("the receipt was answered with status %d", status)
			}
		}
		m := short
		m.Text = strings.Repeat("Длинное сообщение. ", 10)
		if err := s.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		text := ""
		for i := range 3 {
			part := centre.Next()
			if centre.Receipt(); len(part.Parts) != 1 || part.Parts[0][0] != 0 && len(part.Parts[0]) == 0 {
				t.Fatalf("part %d has the header %v", i, part.Parts)
			}
			element := part.Parts[0]
			if n := len(element); element[n-2] != 3 || element[n-1] != i+1 {
				t.Errorf("part %d has the header %v", i, element)
			}
			text += part.Text
		}
		if text != m.Text {
			t.Errorf("the parts read %q", text)
		}
		for number, permanent := range map[string]bool{"79260000001": true, "79260000002": false} {
			m := short
			m.To = number
			if err := s.Send(t.Context(), m); err == nil || notify.IsPermanent(err) != permanent {
				t.Errorf("%s: %v, want permanent %t", number, err, permanent)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Send(t.Context(), short); err == nil {
			t.Error("sent after Close")
		}
	}
	wrong, err := NewSMPP(SMPPConfig{Address: centre.Address, SystemID: "tamga", Password: "wrong"})
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	if err := wrong.Send(t.Context(), short); err == nil || notify.IsPermanent(err) || !strings.Contains(err.Error(), "0x0000000e") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("wrong password: %v", err)
	}
}

// scripted is a message centre whose behaviour a test scripts: answer returns the units
// to send for a received unit; nil closes the connection.
func scripted(t *testing.T, answer func(connection int, p pdu) []pdu) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		connections.Wait()
	})
	connections.Go(func() {
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer conn.Close()
				for {
					p, err := readPDU(conn)
					if err != nil {
						return
					}
					out := answer(n, p)
					if out == nil {
						return
					}
					for _, p := range out {
						if _, err := conn.Write(p.bytes()); err != nil {
							return
						}
					}
				}
			})
		}
	})
	return listener.Addr().String()
}

func yes(p pdu) []pdu {
	return []pdu{{command: p.command | response, sequence: p.sequence, body: []byte{0}}}
}

func smpp(t *testing.T, address string, change func(*SMPPConfig)) *SMPP {
	t.Helper()
	c := SMPPConfig{Address: address, SystemID: "tamga", Timeout: 5 * time.Second}
	if change != nil {
		change(&c)
	}
	s, err := NewSMPP(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestReconnect checks that a broken session is opened again with the next message.
func TestReconnect(t *testing.T) {
	address := scripted(t, func(connection int, p pdu) []pdu {
		if connection == 0 && p.command == submitSM {
			return nil
		}
		return yes(p)
	})
	s := smpp(t, address, nil)
	if err := s.Send(t.Context(), short); err == nil || notify.IsPermanent(err) {
		t.Errorf("first: %v, want a temporary error", err)
	}
	if err := s.Send(t.Context(), short); err != nil {
		t.Errorf("second: %v", err)
	}
}

// TestCentreSpeaks checks that unrelated units of the centre do no harm, and that each
// request of the centre gets a response.
func TestCentreSpeaks(t *testing.T) {
	var mu sync.Mutex
	var heard []pdu
	address := scripted(t, func(_ int, p pdu) []pdu {
		mu.Lock()
		defer mu.Unlock()
		if p.command != submitSM {
			if p.command&response != 0 {
				heard = append(heard, p)
				return []pdu{}
			}
			return yes(p)
		}
		return append([]pdu{
			{command: enquireLink, sequence: 901},
			{command: deliverSM, sequence: 902, body: make([]byte, 30000)},
			{command: 0x7777, sequence: 903},
			{command: alertNotification, sequence: 904},
			{command: submitSM | response, sequence: 905},
			{command: enquireLink | response, sequence: p.sequence}, // a response to another request
		}, yes(p)...)
	})
	s := smpp(t, address, nil)
	if err := s.Send(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	s.Close()
	mu.Lock()
	defer mu.Unlock()
	want := []pdu{
		{command: enquireLink | response, sequence: 901},
		{command: deliverSM | response, sequence: 902, body: []byte{0}},
		{command: genericNack, status: statusBadComm, sequence: 903},
	}
	if d := cmp.Diff(want, heard, cmp.AllowUnexported(pdu{})); d != "" {
		t.Error(d)
	}
}

func TestCentreFails(t *testing.T) {
	for _, c := range []struct {
		name string
		on   func(p pdu) []pdu
		want string
	}{
		{"Nack", func(p pdu) []pdu { return []pdu{{command: genericNack, sequence: p.sequence}} }, "0x00000003"},
		{"Silence", func(p pdu) []pdu { return []pdu{} }, "does not answer"},
		{"Unbind", func(p pdu) []pdu { return []pdu{{command: unbind, sequence: 1}} }, "ended the session"},
		{"Close", func(p pdu) []pdu { return nil }, "broke"},
	} {
		t.Run(c.name, func(t *testing.T) {
			address := scripted(t, func(_ int, p pdu) []pdu {
				if p.command == submitSM {
					return c.on(p)
				}
				return yes(p)
			})
			s := smpp(t, address, func(c *SMPPConfig) { c.Timeout = 200 * time.Millisecond })
			if err := s.Send(t.Context(), short); err == nil || notify.IsPermanent(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want a temporary error with %q", err, c.want)
			}
		})
	}
}

// TestRefusedOnce checks that a centre that refuses to bind is asked once, not for every
// message.
func TestRefusedOnce(t *testing.T) {
	var mu sync.Mutex
	binds := 0
	address := scripted(t, func(_ int, p pdu) []pdu {
		mu.Lock()
		defer mu.Unlock()
		binds++
		return []pdu{{command: p.command | response, status: 0x0e, sequence: p.sequence}}
	})
	s := smpp(t, address, func(c *SMPPConfig) { c.Rebind = time.Hour })
	for range 5 {
		if err := s.Send(t.Context(), short); err == nil || notify.IsPermanent(err) {
			t.Errorf("%v, want a temporary error", err)
		}
	}
	if mu.Lock(); binds != 1 {
		t.Errorf("%d attempts to bind, want 1", binds)
	}
	mu.Unlock()
}

// TestTogether checks that many messages share one session and one window.
func TestTogether(t *testing.T) {
	var mu sync.Mutex
	connections, messages := map[int]bool{}, 0
	address := scripted(t, func(connection int, p pdu) []pdu {
		mu.Lock()
		defer mu.Unlock()
		connections[connection] = true
		if p.command == submitSM {
			messages++
		}
		return yes(p)
	})
	s := smpp(t, address, func(c *SMPPConfig) { c.Window = 3 })
	var senders sync.WaitGroup
	for range 50 {
		senders.Go(func() {
			if err := s.Send(context.Background(), short); err != nil {
				t.Error(err)
			}
		})
	}
	senders.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(connections) != 1 || messages != 50 {
		t.Errorf("%d connections and %d messages, want 1 and 50", len(connections), messages)
	}
}

func TestNewSMPP(t *testing.T) {
	for _, c := range []struct {
		c    SMPPConfig
		want string
	}{
		{SMPPConfig{Address: "centre.example"}, "address"},
		{SMPPConfig{Address: "centre.example:2775", SystemID: strings.Repeat("x", 16)}, "system_id"},
		{SMPPConfig{Address: "centre.example:2775", Password: "123456789"}, "password"},
		{SMPPConfig{Address: "centre.example:2775", SystemID: "имя"}, "ASCII"},
		{SMPPConfig{Address: "centre.example:2775", From: "A name too long"}, "from"},
		{SMPPConfig{Address: "centre.example:2775", Window: -1}, "window"},
	} {
		if _, err := NewSMPP(c.c); err == nil || !strings.Contains(err.Error(), c.want) || c.c.Password != "" && strings.Contains(err.Error(), c.c.Password) {
			t.Errorf("%v, want one about %s", err, c.want)
		}
	}
}

// FuzzCentre checks that whatever a centre sends, the session ends or continues,
// allocates no more memory than a unit may have, and answers only requests.
func FuzzCentre(f *testing.F) {
	f.Add(pdu{command: enquireLink, sequence: 1}.bytes())
	f.Add(append(pdu{command: bindTransceiver | response, sequence: 1, body: []byte("x\x00")}.bytes(), pdu{command: deliverSM, sequence: 2, body: make([]byte, 40)}.bytes()...))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 15})
	f.Fuzz(func(t *testing.T, data []byte) {
		requests := 0
		in := bytes.NewReader(data)
		for {
			p, err := readPDU(in)
			if err != nil || p.command == unbind {
				if err == nil {
					requests++
				}
				break
			}
			if len(p.body) > maxPDU {
				t.Fatalf("a unit of %d bytes", len(p.body))
			}
			if p.command&response == 0 && p.command != alertNotification && p.command != outbind {
				requests++
			}
		}
		near, far := net.Pipe()
		s := newSession(near, 1, time.Minute)
		answers := make(chan int)
		go func() {
			n := 0
			for {
				p, err := readPDU(far)
				if err != nil {
					answers <- n
					return
				}
				if p.command&response == 0 {
					t.Errorf("a response that is not a response to a request: %x", p.command)
				}
				n++
			}
		}()
		far.Write(data)                       // fails after the session has ended
		near.SetReadDeadline(time.Unix(1, 0)) // the session already has what was written
		s.wait()
		far.Close()
		if n := <-answers; n != requests {
			t.Errorf("%d answers to %d requests", n, requests)
		}
	})
}
