// SPDX-License-Identifier: Apache-2.0

// Command xml compares the speed of reading and signing XML with that of libxml2 and
// xmlsec. All do the same work in one process, on one core, in turns. It measures
// processor time, so other programs disturb little. It prints medians and ratios.
//
//	cd bench/xml && go run . [-rounds 7] [-size 100000000] [-check]
//
// With -check it fails if Tamga is slower than the peer, or reads and canonicalizes less
// than 100 MB/s. For a small document signed with RSA, Tamga needs only a ratio of 0.4:
// most of the time is for the key, and RSA in Go is slower than in OpenSSL.
//
// It needs Debian's libxmlsec1-dev and is not part of the product.
package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
	"tamga/sig/xmltree"

	"tamgabench/xml/libxml"
)

var (
	rounds = flag.Int("rounds", 7, "number of timings of each side, of which the median is taken")
	size   = flag.Int("size", 100_000_000, "size of the large document in bytes")
	check  = flag.Bool("check", false, "fail if a ratio is below its minimum or the large document takes too long")
)

// work is an operation that both sides can do. ours and theirs run n rounds and return
// an error if one fails. theirs is nil if the peer does not know the algorithm.
type work struct {
	name         string
	rounds       int
	bytes        int // processed in a round; 0 if the table shows rounds per second
	ours, theirs func(n int) error
	// floor is the minimum ratio for -check.
	floor float64
}

// at is the time of all signatures.
var at = time.Unix(1750000000, 0)

func main() {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "\tTamga\tlibxml2, xmlsec\tratio\t")
	var slow []string
	for _, w := range works() {
		var ours, theirs []float64
		for range *rounds {
			ours = append(ours, rate(w, w.ours))
			if w.theirs != nil {
				theirs = append(theirs, rate(w, w.theirs))
			}
		}
		a := median(ours)
		if theirs == nil {
			fmt.Fprintf(out, "%s\t%s\t\t\t\n", w.name, show(w, a))
			continue
		}
		b := median(theirs)
		fmt.Fprintf(out, "%s\t%s\t%s\t%.2f\t\n", w.name, show(w, a), show(w, b), a/b)
		if a < b*w.floor || w.bytes > 0 && a*float64(w.bytes) < 100e6 {
			slow = append(slow, w.name)
		}
	}
	out.Flush()
	if *check && len(slow) > 0 {
		log.Fatalf("too slow: %s", strings.Join(slow, ", "))
	}
}

// rate returns the number of rounds per second of processor time.
func rate(w work, side func(int) error) float64 {
	runtime.GC()
	begin := spent()
	if err := side(w.rounds); err != nil {
		log.Fatalf("%s: %v", w.name, err)
	}
	return float64(w.rounds) / (spent() - begin).Seconds()
}

// spent returns the processor time of the process, including the garbage collector and
// system calls.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func show(w work, rate float64) string {
	if w.bytes > 0 {
		return fmt.Sprintf("%.0f MB/s", rate*float64(w.bytes)/1e6)
	}
	return fmt.Sprintf("%.0f/s", rate)
}

func works() []work {
	large := ledger(*size)
	all := []work{{
		"read and exclusive C14N, " + fmt.Sprintf("%d MB", len(large)/1e6), 1, len(large),
		func(n int) error {
			for range n {
				t, err := xmltree.Parse(large, xmltree.Options{Size: 1 << 30})
				if err != nil {
					return err
				}
				if err := t.All().Canonicalize(io.Discard, xmltree.Method{Form: xmltree.Exclusive}); err != nil {
					return err
				}
			}
			return nil
		},
		func(n int) error {
			for range n {
				if _, err := libxml.Canonical(large); err != nil {
					return err
				}
			}
			return nil
		},
		1,
	}}
	for _, s := range suite.All() {
		for _, kib := range []int{4, 1024} {
			all = append(all, signing(s, kib))
		}
	}
	return all
}

// signing returns a work that makes an enveloped signature of a document of the given
// size. xmlsec fills a template with the same parameters, if it knows the algorithm.
func signing(s *suite.Suite, kib int) work {
	key, cert := signer(s)
	text := ledger(kib << 10)
	w := work{name: fmt.Sprintf("enveloped, %s, %d KiB", s.Name, kib), rounds: max(1, 1024/kib), floor: 1}
	if s == suite.RSASHA256 && kib < 1024 {
		w.floor = 0.4
	}
	w.ours = func(n int) error {
		for range n {
			job := &sig.Job{Document: bytes.NewReader(text), Certificate: cert, Time: at, Params: sig.Params{"XMLDsigType": "XMLEnveloped"}}
			prepared, err := xmldsig.New().Prepare(context.Background(), job)
			if err != nil {
				return err
			}
			value, err := s.Sign(rand.Reader, key, prepared.Digest)
			if err != nil {
				return err
			}
			result, err := xmldsig.New().Finish(context.Background(), job, prepared.State, value)
			if err != nil {
				return err
			}
			var out bytes.Buffer
			if _, err := result.WriteTo(&out); err != nil {
				return err
			}
		}
		return nil
	}
	if s.IsGOST() {
		return w
	}
	der, err := x509gost.MarshalPrivateKey(key, s)
	if err != nil {
		log.Fatal(err)
	}
	their, err := libxml.Load(der, cert.Raw)
	if err != nil {
		log.Fatal(err)
	}
	template := bytes.Replace(text, []byte("</l:ledger>"), []byte(template(s)+"</l:ledger>"), 1)
	w.theirs = func(n int) error {
		for range n {
			if _, err := their.Sign(template); err != nil {
				return err
			}
		}
		return nil
	}
	return w
}

// signer returns a new key and its self-signed certificate.
func signer(s *suite.Suite) (crypto.Signer, *x509gost.Certificate) {
	key, err := s.Generate(rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OID{2, 5, 4, 3}, Value: "Signer"}})
	if err != nil {
		log.Fatal(err)
	}
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		SerialNumber: []byte{1}, Subject: name, NotBefore: at, NotAfter: at.AddDate(1, 0, 0),
	}, nil, key.Public(), s, s, x509gost.SignWith(rand.Reader, key, s))
	if err != nil {
		log.Fatal(err)
	}
	cert, err := x509gost.ParseCertificate(der)
	if err != nil {
		log.Fatal(err)
	}
	return key, cert
}

// template returns a signature template for xmlsec with the parameters that Tamga uses
// by default.
func template(s *suite.Suite) string {
	const ds, exclusive = "http://www.w3.org/2000/09/xmldsig#", "http://www.w3.org/2001/10/xml-exc-c14n#"
	return `<ds:Signature xmlns:ds="` + ds + `"><ds:SignedInfo><ds:CanonicalizationMethod Algorithm="` + exclusive + `"/>` +
		`<ds:SignatureMethod Algorithm="` + s.XML[0] + `"/><ds:Reference URI=""><ds:Transforms>` +
		`<ds:Transform Algorithm="` + ds + `enveloped-signature"/><ds:Transform Algorithm="` + exclusive + `"/></ds:Transforms>` +
		`<ds:DigestMethod Algorithm="` + s.Hash.XML[0] + `"/><ds:DigestValue/></ds:Reference></ds:SignedInfo>` +
		`<ds:SignatureValue/><ds:KeyInfo><ds:X509Data/></ds:KeyInfo></ds:Signature>`
}

// ledger returns a document of about size bytes that resembles real ones: records with
// attributes, several namespaces and Russian text.
func ledger(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<l:ledger xmlns:l="urn:ledger" xmlns:t="urn:types" xmlns:x="urn:extra" xmlns="urn:default">`)
	for i := 0; b.Len() < size-300; i++ {
		fmt.Fprintf(&b, "\n  <l:row number=\"%d\" t:kind=\"transfer\" Id=\"r%d\">\n    <t:sum currency=\"RUB\">%d.00</t:sum>\n    <x:payer inn=\"7707083893\">ООО &quot;Ромашка&quot;</x:payer>\n    <note>за услуги &amp; товары</note>\n  </l:row>", i, i, i*7)
	}
	b.WriteString("\n</l:ledger>\n")
	return b.Bytes()
}
