// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"io"
	"time"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"

	"tamga/bench/engine"
)

// messageWorks returns works that make detached CMS messages over a document in memory.
// Our message has one more signed attribute than that of the engine: the reference to
// the certificate.
func messageWorks() ([]work, error) {
	key, err := gost3410.GenerateKey(gost3410.CryptoProA, nil)
	if err != nil {
		return nil, err
	}
	certificate, err := certify(key)
	if err != nil {
		return nil, err
	}
	peer, err := engine.Generate(engine.GOST2012256, "A")
	if err != nil {
		return nil, err
	}
	signer, err := peer.Certify()
	if err != nil {
		return nil, err
	}
	known := key.PublicKey().Precompute()
	var all []work
	for _, size := range []struct {
		name  string
		bytes int
	}{{"1 KiB", 1 << 10}, {"100 MiB", 100 << 20}} {
		data := random(size.bytes)
		name := "CMS detached, " + size.name + ", 2012-256 CryptoPro-A"
		bytesOf := 0
		if size.bytes > 1<<20 {
			bytesOf = size.bytes
		}
		theirs := func(n int) error { return signer.SignCMS(data, n) }
		make := func(verify bool) func(n int) error {
			return func(n int) error {
				for range n {
					job := job(data, certificate)
					p, err := cades.New().Prepare(context.Background(), job)
					if err != nil {
						return err
					}
					value, err := key.Sign(rand.Reader, p.Digest.Sum, nil)
					if err != nil {
						return err
					}
					if verify && !known.Verify(p.Digest.Sum, value) {
						return errRefused
					}
					if err := finish(job, p, value); err != nil {
						return err
					}
				}
				return nil
			}
		}
		all = append(all, work{name, bytesOf, make(false), theirs},
			work{name + ", verified against the certificate", bytesOf, make(true), theirs})
		if size.bytes > 1<<20 {
			continue
		}
		all = append(all, work{name + ", eight at a time", 0, func(n int) error {
			for ; n > 0; n -= batch {
				if err := makeMany(min(n, batch), data, certificate, key); err != nil {
					return err
				}
			}
			return nil
		}, theirs})
	}
	return all, nil
}

// makeMany makes up to eight messages as the service does: it hashes the documents side
// by side and makes the signatures in vector lanes.
func makeMany(n int, data []byte, certificate *x509gost.Certificate, key *gost3410.PrivateKey) error {
	var documents [batch][]byte
	for i := range documents {
		documents[i] = data
	}
	digests := certificate.Suite.Hash.SumMany(documents[:n])
	var jobs [batch]*sig.Job
	var prepared [batch]*sig.Prepared
	var items [batch]gost3410.SignItem
	for i := range n {
		jobs[i] = job(data, certificate)
		jobs[i].Digests = digests[i : i+1]
		var err error
		if prepared[i], err = cades.New().Prepare(context.Background(), jobs[i]); err != nil {
			return err
		}
		items[i] = gost3410.SignItem{Key: key, Digest: prepared[i].Digest.Sum}
	}
	values, err := gost3410.SignMany(rand.Reader, items[:n])
	if err != nil {
		return err
	}
	for i, value := range values {
		if err := finish(jobs[i], prepared[i], value); err != nil {
			return err
		}
	}
	return nil
}

func job(data []byte, certificate *x509gost.Certificate) *sig.Job {
	return &sig.Job{Document: bytes.NewReader(data), Certificate: certificate, Params: sig.Params{"IsDetached": "True"}, Time: time.Now()}
}

func finish(job *sig.Job, p *sig.Prepared, value []byte) error {
	out, err := cades.New().Finish(context.Background(), job, p.State, value)
	if err != nil {
		return err
	}
	_, err = out.WriteTo(io.Discard)
	return err
}

// certify returns a self-signed certificate of the key, with the same fields as the
// certificate of the engine.
func certify(key *gost3410.PrivateKey) (*x509gost.Certificate, error) {
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OID{2, 5, 4, 6}, Value: "RU"}, {OID: x509gost.OID{2, 5, 4, 3}, Value: "Signer"}})
	if err != nil {
		return nil, err
	}
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: name, SerialNumber: []byte{0x10, 0x01}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now(), NotAfter: time.Now().AddDate(1, 0, 0),
	}, nil, key.Public(), suite.GOST2012x256, suite.GOST2012x256, x509gost.SignWith(nil, key, suite.GOST2012x256))
	if err != nil {
		return nil, err
	}
	return x509gost.ParseCertificate(der)
}
