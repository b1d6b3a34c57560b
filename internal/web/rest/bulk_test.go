// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
)

// script is a connection that brings bytes in pieces of given lengths and counts the reads.
type script struct {
	net.Conn
	data  []byte
	size  func() int
	reads int
}

func (s *script) Read(p []byte) (int, error) {
	s.reads++
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.size())], s.data)
	s.data = s.data[n:]
	return n, nil
}

// TestBulkKeepsEveryByte reads with buffers of all lengths what comes in pieces of all
// lengths, much and little data in turn.
func TestBulkKeepsEveryByte(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	want := random(12 << 20)
	for range 20 {
		much := true
		s := &script{data: want, size: func() int {
			if r.IntN(40) == 0 {
				much = !much
			}
			if much {
				return 2 << 20
			}
			return 1 + r.IntN(9000)
		}}
		c := &bulkConn{passing: passing{s}}
		var got bytes.Buffer
		for {
			p := make([]byte, []int{1, 100, 4096, 28 << 10, directSize - 1, directSize, 2 * bulkSize}[r.IntN(7)])
			n, err := c.Read(p)
			got.Write(p[:n])
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatal("wrong bytes")
		}
	}
}

// TestBulkAsksSeldom: on a busy connection, small reads cost few system calls. A small
// request holds no large buffer, nor does a large one after its end.
func TestBulkAsksSeldom(t *testing.T) {
	s := &script{data: random(32 << 20), size: func() int { return 2 << 20 }}
	c := &bulkConn{passing: passing{s}}
	p := make([]byte, 4096)
	for range bulkAfter {
		if _, err := io.ReadFull(c, p); err != nil || c.ahead != nil {
			t.Fatalf("there is room for large pieces before much came, %v", err)
		}
	}
	if _, err := io.Copy(io.Discard, struct{ io.Reader }{c}); err != nil {
		t.Fatal(err)
	}
	if most := bulkAfter + 32<<20/bulkSize + 3; s.reads > most {
		t.Errorf("the connection was asked %d times; want at most %d", s.reads, most)
	}
	if c.Read(p); c.ahead != nil {
		t.Error("room for large pieces is held when nothing comes any more")
	}
}

// TestBulkEndsOneDirection: a server of net/http refuses headers that are too large by
// itself, ends what it sends and leaves the rest of them unread. The client reads the
// refusal to its end, at once.
func TestBulkEndsOneDirection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := Bulk(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	half, ok := server.(interface{ CloseWrite() error })
	if !ok {
		t.Fatal("net/http cannot end one direction of the connection")
	}
	if _, err := server.Write([]byte("refused")); err != nil {
		t.Fatal(err)
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(client); err != nil || string(text) != "refused" {
		t.Fatalf("read %q, %v", text, err)
	}
	if _, err := client.Write([]byte("more")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(server, got); err != nil || string(got) != "more" {
		t.Errorf("read %q, %v", got, err)
	}
}
