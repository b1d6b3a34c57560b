// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestEventsApart opens a stream of events at a server that has one connection at most. The stream takes no place, and the
// connection is counted again when the stream has ended.
func TestEventsApart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	crowded := Crowded(l, 1)
	more, ended := make(chan string), make(chan bool)
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/events" {
			io.WriteString(w, "ordinary")
			return
		}
		a, _ := prepare(Events{Follow: func(send func(string) error) error {
			for {
				select {
				case text := <-more:
					if err := send(text); err != nil {
						return err
					}
				case <-r.Context().Done():
					return nil
				}
			}
		}})
		if err := a.sendEvents(r.Context(), w); err != nil {
			t.Error(err)
		}
		ended <- true
	})
	log := slog.New(slog.DiscardHandler)
	server := NewServer(answers, log)
	NewResets(log, prometheus.NewRegistry()).Guard(server)
	go server.Serve(crowded)
	t.Cleanup(func() { server.Close() })

	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+l.Addr().String()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	for _, text := range []string{"one", "two\nlines"} {
		more <- text
	}
	for _, want := range []string{"data: one", "", "data: two lines", ""} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("the stream has %q, want %q", lines.Text(), want)
		}
	}
	for range 2 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		a, err := client.Get("http://" + l.Addr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(a.Body); string(text) != "ordinary" {
			t.Errorf("beside a stream the answer is %q", text)
		}
		a.Body.Close()
	}
	leave()
	<-ended
	for { // the connections end a moment later
		crowded.mu.Lock()
		open := crowded.open
		crowded.mu.Unlock()
		if open == 0 {
			break
		}
		runtime.Gosched()
		if open < 0 {
			t.Fatalf("%d connections are open", open)
		}
	}
}
