// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// TestRefusalsAreHeard: clients that send all of a request before they read anything
// get the answer, however early it was given.
func TestRefusalsAreHeard(t *testing.T) {
	h := open(t, Limits{Ordinary: 50})
	const length = 64 << 20 // more than the system keeps of a connection
	for name, c := range map[string]struct{ head, code string }{
		"too large":  {"POST /Sign/api/string HTTP/1.1\r\nAuthorization: Bearer anna", "413"},
		"no token":   {"POST /Sign/api/echo/1 HTTP/1.1\r\nAuthorization: Bearer bad", "401"},
		"no address": {"POST /nothing HTTP/1.1", "404"},
	} {
		conn, err := net.Dial("tcp", h.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s\r\nHost: x\r\nContent-Length: %d\r\n\r\n", c.head, length)
		piece := make([]byte, 1<<20)
		for range length / len(piece) {
			if _, err := conn.Write(piece); err != nil {
				t.Fatalf("%s: sending: %v", name, err)
			}
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text, err := io.ReadAll(answer.Body); err != nil || !strings.HasPrefix(answer.Status, c.code) || !strings.Contains(string(text), "error_description") {
			t.Errorf("%s: %s %s, %v", name, answer.Status, text, err)
		}
	}
}

// TestRefusedAreNotAwaited: the server does not wait forever for a refused client that
// sends nothing more.
func TestRefusedAreNotAwaited(t *testing.T) {
	out := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest("POST", "/", &silent{t, out})
	Heard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(401) })).ServeHTTP(out, r)
	if !out.asked || out.Code != 401 || !out.Flushed {
		t.Errorf("%+v", out)
	}

	out = &deadlined{ResponseRecorder: httptest.NewRecorder()}
	r = httptest.NewRequest("POST", "/", &silent{t, out})
	Heard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200) })).ServeHTTP(out, r)
	if out.asked || !out.deadline.IsZero() {
		t.Error("a request that was served is waited for")
	}
}

type deadlined struct {
	*httptest.ResponseRecorder
	deadline time.Time
	asked    bool
}

func (d *deadlined) SetReadDeadline(t time.Time) error { d.deadline = t; return nil }

// silent is a body that never comes.
type silent struct {
	t   *testing.T
	out *deadlined
}

func (s *silent) Read([]byte) (int, error) {
	if s.out.deadline.IsZero() {
		s.t.Error("waits without a deadline")
		return 0, errors.New("for ever")
	}
	s.out.asked = true
	return 0, os.ErrDeadlineExceeded
}
