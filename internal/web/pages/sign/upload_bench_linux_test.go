// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tamga/gost/streebog"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

const (
	uploadFiles = 200
	uploadSize  = 1 << 20
)

// BenchmarkSignByPage signs 200 files of 1 MiB by the form of the page, in one upload as upload.js
// and browsers send it. It reports the processor time of the server, which has a process of its
// own, and medians of this time over that of the same bytes in this process: of one pass of
// Streebog-256 (to-hash), and of this pass together with receiving the form over the loopback
// interface (to-bound).
//
//	go test -run '^$' -bench SignByPage -benchtime 10x ./internal/web/pages
func BenchmarkSignByPage(b *testing.B) {
	server := tamgatest.StartProcess(b, b.TempDir())
	p := pagetest.New(b, server)
	p.SignIn("/sign", server.Dev.User.Login, server.Dev.User.Password)
	var took, toHash, toBound []float64
	b.SetBytes(uploadFiles * uploadSize)
	for b.Loop() {
		body, kind := uploadBody(b)
		before := server.ProcessorTime()
		signed := p.Shows(p.Do("POST", "/sign", kind, body))
		t := (server.ProcessorTime() - before).Seconds()
		if n := strings.Count(signed.Text, ">Signed<"); n != uploadFiles {
			b.Fatalf("%d files are signed, want %d:\n%s", n, uploadFiles, signed.Text)
		}
		b.StopTimer()
		hash := threadTime(b, func() error {
			h := streebog.New256()
			for range uploadFiles * uploadSize / len(uploadPiece) {
				h.Write(uploadPiece)
			}
			h.Sum(nil)
			return nil
		}).Seconds()
		took, toHash, toBound = append(took, t), append(toHash, t/hash), append(toBound, t/(hash+receiveTime(b).Seconds()))
		b.StartTimer()
	}
	for name, values := range map[string][]float64{"server-s": took, "to-hash": toHash, "to-bound": toBound} {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
}

var uploadPiece = bytes.Repeat([]byte("0123456789abcdef"), 8<<10)

// uploadBody streams the form.
func uploadBody(b *testing.B) (io.Reader, string) {
	out, in := io.Pipe()
	b.Cleanup(func() { out.Close() }) // if it is not read to its end
	w := multipart.NewWriter(in)
	go func() {
		err := w.WriteField("certificate", "1")
		for i := 0; err == nil && i < uploadFiles; i++ {
			var part io.Writer
			if part, err = w.CreateFormFile("file", fmt.Sprintf("file %d.bin", i)); err != nil {
				break
			}
			for n := 0; err == nil && n < uploadSize; n += len(uploadPiece) {
				_, err = part.Write(uploadPiece)
			}
		}
		if err == nil {
			err = w.Close()
		}
		in.CloseWithError(err)
	}()
	return out, w.FormDataContentType()
}

// receiveTime returns the processor time of receiving the form and reading its files.
func receiveTime(b *testing.B) time.Duration {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	body, kind := uploadBody(b)
	sent := make(chan error, 1)
	go func() {
		resp, err := http.Post("http://"+listener.Addr().String(), kind, body)
		if err == nil {
			err = resp.Body.Close()
		}
		sent <- err
	}()
	took := threadTime(b, func() error {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		defer conn.Close()
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return err
		}
		form, err := r.MultipartReader()
		if err != nil {
			return err
		}
		for {
			part, err := form.NextPart()
			if err == io.EOF {
				_, err = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
				return err
			}
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, part); err != nil {
				return err
			}
		}
	})
	if err := <-sent; err != nil {
		b.Fatal(err)
	}
	return took
}

// threadTime returns the processor time of work, which runs on a thread of its own.
func threadTime(b *testing.B, work func() error) time.Duration {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	if err := work(); err != nil {
		b.Fatal(err)
	}
	return used() - before
}
