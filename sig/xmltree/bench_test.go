// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// ledger returns a document of about size bytes like documents in real use: records with
// attributes, several namespaces and Russian text.
func ledger(size int) []byte {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<l:ledger xmlns:l="urn:ledger" xmlns:t="urn:types" xmlns:x="urn:extra" xmlns="urn:default" xmlns:u="urn:unused">`)
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "\n  <l:row number=\"%d\" t:kind=\"transfer\" Id=\"r%d\">\n    <t:sum currency=\"RUB\">%d.00</t:sum>\n    <x:payer inn=\"7707083893\">ООО &quot;Ромашка&quot;</x:payer>\n    <note>за услуги &amp; товары</note>\n  </l:row>", i, i, i*7)
	}
	b.WriteString("\n</l:ledger>\n")
	return []byte(b.String())
}

const benchSize = 100_000_000

// dense has documents with as little text for each node as possible.
var dense = map[string]func(size int) []byte{
	"ledger":     ledger,
	"text":       func(size int) []byte { return repeated("<a>1</a>", size) },
	"empty tags": func(size int) []byte { return repeated("<a/>", size) },
	"mixed":      func(size int) []byte { return repeated("<a/>1", size) },
	"attributes": func(size int) []byte { return repeated("<a b=''/>", size) },
}

func repeated(part string, size int) []byte {
	return []byte("<r>" + strings.Repeat(part, size/len(part)) + "</r>")
}

// BenchmarkParse also reports the memory of a document, its tree and a node set as a multiple
// of the document's size.
func BenchmarkParse(b *testing.B) {
	for name, make := range dense {
		b.Run(name, func(b *testing.B) {
			document := make(benchSize)
			b.SetBytes(int64(len(document)))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var set *NodeSet
			for b.Loop() {
				tree, err := Parse(document, Options{Nodes: 1 << 30})
				if err != nil {
					b.Fatal(err)
				}
				set = tree.All()
			}
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)+int64(len(document)))/float64(len(document)), "mem/size")
			runtime.KeepAlive(set)
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	document := ledger(benchSize)
	tree := mustParse(b, document)
	for _, j := range judged {
		b.Run(j.option[2:], func(b *testing.B) {
			b.SetBytes(int64(len(document)))
			for b.Loop() {
				if err := tree.All().Canonicalize(io.Discard, Method{Form: j.form}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParseCanonical measures reading and the exclusive form together. It must reach at
// least 100 MB/s.
func BenchmarkParseCanonical(b *testing.B) {
	document := ledger(benchSize)
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if err := mustParse(b, document).All().Canonicalize(io.Discard, Method{Form: Exclusive}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkXPath measures the filter that most signatures use.
func BenchmarkXPath(b *testing.B) {
	document := ledger(benchSize)
	tree := mustParse(b, document)
	x, err := tree.CompileXPath("not(ancestor-or-self::t:sum)", tree.Root())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if err := tree.All().FilterXPath(x); err != nil {
			b.Fatal(err)
		}
	}
}
