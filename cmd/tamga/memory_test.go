// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"tamga/gost/streebog"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// requestOf streams a signing request over a document of size bytes, without
// holding it: the Base64 text of a repeated pattern between a head and a tail.
func requestOf(size int64, kind, params string, cert int64) (body io.Reader, length int64) {
	head := `{"Content":"`
	tail := fmt.Sprintf(`","Signature":{"Type":%q,"Parameters":%s,"CertificateId":%d,"PinCode":""}}`, kind, params, cert)
	pattern := make([]byte, 3<<18)
	for i := range pattern {
		pattern[i] = byte(i * 7)
	}
	text := []byte(base64.StdEncoding.EncodeToString(pattern))
	whole, rest := size/int64(len(pattern)), size%int64(len(pattern))
	parts := []io.Reader{bytes.NewReader([]byte(head))}
	for range whole {
		parts = append(parts, bytes.NewReader(text))
	}
	last := base64.StdEncoding.EncodeToString(pattern[:rest]) + tail
	parts = append(parts, bytes.NewReader([]byte(last)))
	return io.MultiReader(parts...), int64(len(head)) + whole*int64(len(text)) + int64(len(last))
}

type memoryMode struct {
	name, kind, params string
	chunked            bool // the request does not say its length
}

// memoryModes are what is signed with documents of any size.
var memoryModes = []memoryMode{
	{name: "raw", kind: "GOST3410", params: `{"Hash":"False"}`},
	{name: "detached", kind: "CAdES", params: `{"CADESType":"BES","IsDetached":"True"}`},
	{name: "detached-chunked", kind: "CAdES", params: `{"CADESType":"BES","IsDetached":"True"}`, chunked: true},
	{name: "attached", kind: "CAdES", params: `{"CADESType":"BES","IsDetached":"False"}`},
}

// signStreamed sends the request, in chunks when length is -1, and throws the answer
// away as it comes; it returns how long the answer was.
func signStreamed(p *tamgatest.Server, token string, body io.Reader, length int64) (int64, error) {
	request, err := http.NewRequestWithContext(context.Background(), "POST", p.Dev.BaseURL+"/api/documents", body)
	if err != nil {
		return 0, err
	}
	request.ContentLength = length
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		text, _ := io.ReadAll(response.Body)
		return 0, fmt.Errorf("%d %s", response.StatusCode, text)
	}
	return io.Copy(io.Discard, response.Body)
}

// signMode signs a document of size bytes in a mode.
func signMode(p *tamgatest.Server, token string, mode memoryMode, size, cert int64) (int64, error) {
	body, length := requestOf(size, mode.kind, mode.params, cert)
	if mode.chunked {
		length = -1
	}
	return signStreamed(p, token, body, length)
}

// peakRise returns by how much the resident memory of the server rose at its
// highest while work ran.
func peakRise(p *tamgatest.Server, work func()) int64 {
	p.T.Helper()
	resetPeak(p)
	before := memory(p, "VmRSS")
	work()
	return memory(p, "VmHWM") - before
}

const (
	oneRequestRise   = 64 << 20
	manyRequestsRise = 512 << 20
)

// TestMemoryDoesNotGrowWithTheDocument is the short form of BenchmarkMemory and
// BenchmarkDocumentStore: the same limits over smaller documents.
func TestMemoryDoesNotGrowWithTheDocument(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("it compiles a program and moves gigabytes")
	}
	t.Parallel()
	server := tamgatest.StartProgram(t, plainProgram(t), t.TempDir())
	token := server.Token()
	cert := server.Cert("gost2012-256", false).ID
	size := int64(160 << 20)
	if testsize.Of() < testsize.Whole {
		size = 80 << 20 // more than a request may have
	}
	for _, mode := range memoryModes {
		t.Run(mode.name, func(t *testing.T) {
			rise := peakRise(server, func() {
				n, err := signMode(server, token, mode, size, cert)
				if err != nil {
					t.Fatal(err)
				}
				if mode.name == "attached" && n < size*4/3 {
					t.Fatalf("the answer has %d bytes: the document is not in it", n)
				}
			})
			if rise > oneRequestRise {
				t.Errorf("one request of %d MiB raised the resident memory by %d MiB; want at most %d", size>>20, rise>>20, oneRequestRise>>20)
			}
		})
	}
	t.Run("many at once", func(t *testing.T) {
		rise := peakRise(server, func() { signAtOnce(t, server, token, cert, 50, 4<<20) })
		if rise > manyRequestsRise/4 {
			t.Errorf("50 requests of 4 MiB raised the resident memory by %d MiB; want at most %d", rise>>20, manyRequestsRise/4>>20)
		}
	})
	t.Run("documents", func(t *testing.T) { documentMemory(t, server) })
	t.Run("encryption", func(t *testing.T) { encryptionMemory(t, server) })
}

func signAtOnce(t testing.TB, server *tamgatest.Server, token string, cert int64, requests int, size int64) {
	t.Helper()
	var all sync.WaitGroup
	for i := range requests {
		mode := memoryModes[i%len(memoryModes)]
		all.Go(func() {
			if _, err := signMode(server, token, mode, size, cert); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// BenchmarkMemory prints how much the server does in a second of its own processor
// time, what part that is of what Streebog alone does in a second ("of-hash"), medians
// both, and by how much the resident memory of the server rises at its peak: for one
// document of 1 GiB in each mode, and for 50 requests of 100 MiB at once. The server has
// a processor of its own where there are two. Run it with
//
//	go test -run '^$' -bench Memory -benchtime 5x ./cmd/tamga
func BenchmarkMemory(b *testing.B) {
	program := plainProgram(b)
	server := onOwnProcessor(b, func() *tamgatest.Server { return tamgatest.StartProgram(b, program, b.TempDir()) })
	cert := server.Cert("gost2012-256", false).ID
	for _, mode := range memoryModes {
		b.Run(mode.name+"-1GiB", func(b *testing.B) {
			b.SetBytes(1 << 30)
			var took, of []float64
			rises := int64(0)
			for b.Loop() {
				token := server.Token()
				before := server.ProcessorTime()
				rise := peakRise(server, func() {
					if _, err := signMode(server, token, mode, 1<<30, cert); err != nil {
						b.Fatal(err)
					}
				})
				t := (server.ProcessorTime() - before).Seconds()
				took, of = append(took, t), append(of, hashTime(b, 1<<30).Seconds()/t)
				rises = max(rises, rise)
			}
			b.ReportMetric((1<<30)/1e6/median(took), "MB/server-cpu-s")
			b.ReportMetric(median(of), "of-hash")
			b.ReportMetric(float64(rises)/(1<<20), "peak-rise-MiB")
			if rises > oneRequestRise {
				b.Errorf("the resident memory rose by %d MiB; want at most %d", rises>>20, oneRequestRise>>20)
			}
		})
	}
	b.Run("50x100MiB", func(b *testing.B) {
		b.SetBytes(50 * 100 << 20)
		for b.Loop() {
			token := server.Token()
			rise := peakRise(server, func() { signAtOnce(b, server, token, cert, 50, 100<<20) })
			b.ReportMetric(float64(rise)/(1<<20), "peak-rise-MiB")
			if rise > manyRequestsRise {
				b.Errorf("the resident memory rose by %d MiB; want at most %d", rise>>20, manyRequestsRise>>20)
			}
		}
	})
}

// median returns the middle of values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// hashTime is the processor time of Streebog-256 over size bytes in this process, in
// the same moment and so on the same machine as what it is compared with.
func hashTime(b *testing.B, size int) time.Duration {
	b.Helper()
	piece := make([]byte, 128<<10)
	h := streebog.New256()
	before := ownTime(b)
	for range size / len(piece) {
		h.Write(piece)
	}
	h.Sum(nil)
	return ownTime(b) - before
}

// ownTime is the processor time that this process has taken.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
