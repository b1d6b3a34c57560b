// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"

	"tamga/pki/x509gost"
)

// PEM returns a certificate in PEM form.
func PEM(c *x509gost.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// Size returns a size in bytes as text for people, such as "512 bytes" or "1.5 MiB".
func Size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	size, unit := float64(n), -1
	for size >= 1<<10 && unit < 4 {
		size /= 1 << 10
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTP"[unit])
}

// Certificates reads all certificates of a file, PEM or DER. A file without any is an error.
func Certificates(path string) ([]*x509gost.Certificate, error) {
	data, err := Bounded(path, x509gost.MaxBundle)
	if err != nil {
		return nil, err
	}
	certs, err := x509gost.ParseCertificates(data)
	if err == nil && len(certs) == 0 {
		err = errors.New("no certificate in the file")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return certs, nil
}

// RevocationLists reads one DER list or all lists of a PEM file. A file without any is an error.
func RevocationLists(path string) (lists []*x509gost.RevocationList, err error) {
	// PEM is a third longer than DER.
	data, err := Bounded(path, x509gost.MaxRevocationList/2*3)
	if err != nil {
		return nil, err
	}
	var ders [][]byte
	if block, rest := pem.Decode(data); block == nil {
		ders = append(ders, data)
	} else {
		for ; block != nil; block, rest = pem.Decode(rest) {
			if block.Type == "X509 CRL" {
				ders = append(ders, block.Bytes)
			}
		}
	}
	for _, der := range ders {
		list, err := x509gost.ParseRevocationList(der)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		lists = append(lists, list)
	}
	if len(lists) == 0 {
		return nil, fmt.Errorf("%s: no revocation list in the file", path)
	}
	return lists, nil
}

// Bounded reads a file of at most most bytes.
func Bounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %s", path, Size(most))
	}
	return data, err
}
