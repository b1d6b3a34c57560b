// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
)

// TestChunkedBodyEndsTheConnection sends a request that another program may take for two.
func TestChunkedBodyEndsTheConnection(t *testing.T) {
	h := open(t, Limits{})
	for name, head := range map[string]string{
		"both lengths": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"chunked":      "Transfer-Encoding: chunked\r\n",
	} {
		conn, err := net.Dial("tcp", h.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const rest = "GET /Sign/api/open HTTP/1.1\r\nHost: x\r\n\r\n"
		if _, err := io.WriteString(conn, "POST /Sign/api/void HTTP/1.1\r\nHost: x\r\n"+head+"\r\n0\r\n\r\n"+rest); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != 200 || !answer.Close {
			t.Errorf("%s: %d, closes %v, %v", name, answer.StatusCode, answer.Close, err)
		}
		if more, _ := io.ReadAll(in); len(more) > 0 {
			t.Errorf("%s: a second answer: %s", name, more)
		}
	}
}
