// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"io"
	"regexp"

	"tamga/pki/x509gost"
)

// anchors returns the certificates in a document whose issuer is not in it, or that are issued by themselves.
func anchors(data []byte) (list []*x509gost.Certificate) {
	found := map[string]*x509gost.Certificate{}
	search(data, 0, found)
	for _, c := range found {
		issued := false
		for _, by := range found {
			issued = issued || by != c && by.Subject.Equal(c.Issuer)
		}
		if !issued || c.Subject.Equal(c.Issuer) {
			list = append(list, c)
		}
	}
	return list
}

var (
	base64Run = regexp.MustCompile(`[A-Za-z0-9+/][A-Za-z0-9+/\s]{300,}={0,2}`)
	hexRun    = regexp.MustCompile(`[0-9A-Fa-f]{400,}`)
	space     = regexp.MustCompile(`\s+`)
)

const (
	deepest = 4        // forms inside each other
	largest = 16 << 20 // bytes of one decompressed part
)

// search looks for certificates in all forms in which formats have them: DER, Base64, hexadecimal, Deflate in PDF and ZIP.
func search(data []byte, depth int, found map[string]*x509gost.Certificate) {
	for at := 0; at+4 < len(data); at++ {
		if data[at] != 0x30 || data[at+1] != 0x82 {
			continue
		}
		if size := 4 + int(data[at+2])<<8 + int(data[at+3]); at+size <= len(data) && size < x509gost.MaxCertificate {
			if c, err := x509gost.ParseCertificate(data[at : at+size]); err == nil {
				found[string(c.Raw)] = c
			}
		}
	}
	if depth == deepest {
		return
	}
	if bytes.HasPrefix(data, []byte("PK")) {
		if z, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err == nil {
			for _, f := range z.File {
				if r, err := f.Open(); err == nil {
					part, _ := io.ReadAll(io.LimitReader(r, largest))
					search(part, depth+1, found)
				}
			}
		}
		return
	}
	for _, run := range base64Run.FindAll(data, -1) {
		text := space.ReplaceAll(run, nil)
		for len(text)%4 != 0 {
			text = append(text, '=')
		}
		if part, err := base64.StdEncoding.DecodeString(string(text)); err == nil {
			search(part, depth+1, found)
		}
	}
	for _, run := range hexRun.FindAll(data, -1) {
		part := make([]byte, len(run)/2)
		hex.Decode(part, run[:len(part)*2])
		search(part, depth+1, found)
	}
	for rest := data; ; {
		_, after, ok := bytes.Cut(rest, []byte("stream"))
		if !ok {
			return
		}
		rest = after
		if r, err := zlib.NewReader(bytes.NewReader(bytes.TrimLeft(after, "\r\n"))); err == nil {
			part, _ := io.ReadAll(io.LimitReader(r, largest))
			search(part, depth+1, found)
		}
	}
}
