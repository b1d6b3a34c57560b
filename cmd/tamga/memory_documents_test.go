// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
	"testing"
)

// storeModes are the ways to bring a document of size bytes in.
var storeModes = []struct {
	name string
	send func(d *tamgatest.DocumentStore, size int64) (io.Reader, string, []string)
}{
	{"raw", func(d *tamgatest.DocumentStore, size int64) (io.Reader, string, []string) {
		return io.LimitReader(repeating{}, size), "", []string{"CPDSS-POSTDOC", "e30"}
	}},
	{"parts", func(d *tamgatest.DocumentStore, size int64) (io.Reader, string, []string) {
		head := "--b\r\nContent-Disposition: form-data; name=a_info\r\n\r\n{}\r\n--b\r\nContent-Disposition: form-data; name=a_content; filename=a\r\n\r\n"
		return io.MultiReader(strings.NewReader(head), io.LimitReader(repeating{}, size), strings.NewReader("\r\n--b--\r\n")), "/multipartpack",
			[]string{"Content-Type", "multipart/form-data; boundary=b"}
	}},
	{"pack", func(d *tamgatest.DocumentStore, size int64) (io.Reader, string, []string) {
		text := strings.Repeat("YWJj", 1<<18)
		parts := []io.Reader{strings.NewReader(`{"Documents":[{"Content":"`)}
		for range size / (3 << 18) {
			parts = append(parts, strings.NewReader(text))
		}
		return io.MultiReader(append(parts, strings.NewReader(`","FileName":"a"}]}`))...), "/pack", nil
	}},
}

// repeating reads as "abc" without an end.
type repeating struct{}

func (repeating) Read(p []byte) (int, error) {
	p = p[:len(p)/3*3]
	for i := 0; i < len(p); i += 3 {
		copy(p[i:], "abc")
	}
	return len(p), nil
}

// storeMode uploads a document of size bytes and downloads it, without holding it.
func storeMode(d *tamgatest.DocumentStore, mode int, size int64) {
	body, path, headers := storeModes[mode].send(d, size)
	response, text := d.Ask("POST", path, body, headers...)
	var id tamgatest.DocumentIDs
	if err := json.Unmarshal(text, &id); err != nil || response.StatusCode != 200 {
		d.T.Errorf("%s: %d %s", storeModes[mode].name, response.StatusCode, text)
		return
	}
	one := append(id.DocumentIDs, id.DocumentID)[0]
	for _, call := range [][3]string{{"GET", "/" + one + "/content", ""}, {"POST", "/content/download", `{"DocumentIds":["` + one + `"]}`}} {
		request, err := http.NewRequestWithContext(d.T.Context(), call[0], d.Base+call[1], strings.NewReader(call[2]))
		if err != nil {
			d.T.Error(err)
			return
		}
		request.Header.Set("Authorization", "Bearer "+d.Bearer)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			d.T.Error(err)
			return
		}
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || n < size || response.StatusCode != 200 {
			d.T.Errorf("%s: downloaded %d bytes: %d, %v", call[1], n, response.StatusCode, err)
		}
	}
	d.Get("DELETE", "/"+one, nil, nil)
}

// documentMemory: the memory of a server does not grow with a document of its store.
func documentMemory(t *testing.T, server *tamgatest.Server) {
	d := tamgatest.Documents(server, server.Token())
	size := int64(3 << 18 * 200) // 150 MiB
	if testsize.Of() < testsize.Whole {
		size = 3 << 18 * 107 // 80 MiB, more than a request may have
	}
	for mode := range storeModes {
		t.Run(storeModes[mode].name, func(t *testing.T) {
			if rise := peakRise(server, func() { storeMode(d, mode, size) }); rise > oneRequestRise {
				t.Errorf("one document of %d MiB raised the resident memory by %d MiB; want at most %d", size>>20, rise>>20, oneRequestRise>>20)
			} else {
				t.Logf("%d MiB", rise>>20)
			}
		})
	}
	t.Run("many at once", func(t *testing.T) {
		rise := peakRise(server, func() {
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() { storeMode(d, i%len(storeModes), 3<<18*5) })
			}
			all.Wait()
		})
		if rise > manyRequestsRise/4 {
			t.Errorf("50 documents of 4 MiB raised the resident memory by %d MiB; want at most %d", rise>>20, manyRequestsRise/4>>20)
		}
	})
}

// BenchmarkDocumentStore prints what uploads and downloads of 1 GiB cost the server.
func BenchmarkDocumentStore(b *testing.B) {
	server := tamgatest.StartProgram(b, plainProgram(b), b.TempDir())
	const size = 3 << 18 * 1365
	for mode := range storeModes {
		b.Run(storeModes[mode].name, func(b *testing.B) {
			b.SetBytes(3 * size) // in once, out twice
			for b.Loop() {
				d := tamgatest.Documents(server, server.Token())
				before := server.ProcessorTime()
				rise := peakRise(server, func() { storeMode(d, mode, size) })
				b.ReportMetric(3*size/1e6/(server.ProcessorTime()-before).Seconds(), "MB/server-cpu-s")
				b.ReportMetric(float64(rise)/(1<<20), "peak-rise-MiB")
			}
		})
	}
}
