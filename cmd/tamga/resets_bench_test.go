// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"tamga/internal/tamgatest"
)

// resetting opens streams on one connection of HTTP/2 and resets each at once, until stop is closed or
// the server ends the connection. It returns how many streams it opened.
func resetting(address string, config *tls.Config, path string, form []byte, stop <-chan struct{}) (opened int64, err error) {
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ended := make(chan struct{})
	go func() { // what the server sends is dropped
		defer close(ended)
		for buffer := make([]byte, 64<<10); ; {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
		}
	}()
	defer func() { conn.Close(); <-ended }()
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	encoder.SetMaxDynamicTableSize(0)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":authority", address}, {":path", path},
		{"content-type", "application/x-www-form-urlencoded"},
	} {
		encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	var out bytes.Buffer
	framer := http2.NewFramer(&out, nil)
	out.WriteString(http2.ClientPreface)
	framer.WriteSettings()
	for stream := uint32(1); stream < 1<<31; stream += 2 {
		select {
		case <-stop:
			return opened, nil
		case <-ended:
			return opened, nil
		default:
		}
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndHeaders: true})
		framer.WriteData(stream, true, form)
		framer.WriteRSTStream(stream, http2.ErrCodeCancel)
		if _, err := conn.Write(out.Bytes()); err != nil {
			return opened, nil // the server ended the connection
		}
		out.Reset()
		opened++
	}
	return opened, nil
}

// BenchmarkBesideResets times signatures, 200 a second, alone and beside six clients of HTTP/2 that ask
// for a token and reset the stream at once, again and again (CVE-2023-44487). A client whose
// connection was ended connects again at once. Both are measured in turns. "p50-ms" and
// "beside-p50-ms" are the medians of the turns, "ratio" is theirs. Run it with
//
//	go test -run '^$' -bench BesideResets -benchtime 5x ./cmd/tamga
//
// where -benchtime says how many turns there are.
func BenchmarkBesideResets(b *testing.B) {
	certificate, key, roots := serverFiles(b, b.TempDir())
	server := tamgatest.StartProgram(b, plainProgram(b), b.TempDir(), append(tamgatest.DefaultCost(), "--set", "tokens.access_life=1h",
		"--set", "tls.certificate_file="+certificate, "--set", "tls.key_file="+key)...)
	base, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	token := tokenOver(b, client, server)
	form := []byte(url.Values{"grant_type": {"password"}, "username": {server.Dev.User.Login}, "password": {"guess"},
		"client_id": {server.Dev.ClientID}, "resource": {server.Dev.Resource}}.Encode())
	path := server.Dev.TokenURL[strings.Index(server.Dev.TokenURL, base.Host)+len(base.Host):]
	signature, err := json.Marshal(tamgatest.Request(bytes.Repeat([]byte("0123456789abcdef"), 64), "CAdES", server.Cert("gost2012-256", false).ID, tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"}))
	if err != nil {
		b.Fatal(err)
	}
	const clients, rate = 6, 200
	p50 := func() float64 {
		return quantile(b, client, server.Dev.BaseURL, token, signature, rate, 3*time.Second, 50)
	}
	p50() // warm
	var alone, beside []float64
	var streams, connections atomic.Int64
	var spent time.Duration
	for b.Loop() {
		alone = append(alone, p50())
		before := server.ProcessorTime()
		stop := make(chan struct{})
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				own := &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}, ServerName: base.Hostname()}
				for {
					n, err := resetting(base.Host, own, path, form, stop)
					if err != nil {
						b.Error(err)
						return
					}
					streams.Add(n)
					connections.Add(1)
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		beside = append(beside, p50())
		spent += server.ProcessorTime() - before
		close(stop)
		all.Wait()
	}
	slices.Sort(alone)
	slices.Sort(beside)
	one, other := alone[len(alone)/2], beside[len(beside)/2]
	b.ReportMetric(one, "p50-ms")
	b.ReportMetric(other, "beside-p50-ms")
	b.ReportMetric(other/one, "ratio")
	b.ReportMetric(float64(streams.Load())/float64(b.N), "streams/op")
	b.ReportMetric(float64(connections.Load())/float64(b.N), "connections/op")
	b.ReportMetric(spent.Seconds()/float64(b.N), "server-cpu-s/op")
}

// tokenOver signs the user in with a client that trusts the server's certificate.
func tokenOver(b *testing.B, client *http.Client, server *tamgatest.Server) string {
	b.Helper()
	response, err := client.PostForm(server.Dev.TokenURL, url.Values{
		"grant_type": {"password"}, "username": {server.Dev.User.Login}, "password": {server.Dev.User.Password},
		"client_id": {server.Dev.ClientID}, "resource": {server.Dev.Resource},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.AccessToken == "" {
		b.Fatalf("no token: %s %v", response.Status, err)
	}
	return answer.AccessToken
}
