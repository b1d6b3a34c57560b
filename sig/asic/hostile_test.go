// SPDX-License-Identifier: Apache-2.0

package asic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
)

// A container that another program could have made passes. Each change of it has its verdict and its reason.
func TestChanged(t *testing.T) {
	root, signer := parties(t, suite.ECDSAP256)
	good := byHand(t, signer)
	list := func(files ...[2]string) string { return listOf("META-INF/signature1.p7s", suite.SHA256, files...) }
	a, b := [2]string{"a.txt", "first"}, [2]string{"sub/b%20c.txt", "second"}
	signed := func(list string) []sigtest.ZipEntry {
		with := edited(good, "META-INF/ASiCManifest1.xml", func(e *sigtest.ZipEntry) { e.Content = list })
		return edited(with, "META-INF/signature1.p7s", func(e *sigtest.ZipEntry) { e.Content = detached(t, signer, list) })
	}
	content := func(name, content string) []sigtest.ZipEntry {
		return edited(good, name, func(e *sigtest.ZipEntry) { e.Content = content })
	}
	const passed = "passed : a.txt[0] sub/b c.txt[0]"
	for _, c := range []struct {
		name    string
		entries []sigtest.ZipEntry
		want    string
	}{
		{"unchanged", good, passed},
		{"a file changed", content("a.txt", "First"), "failed covers-part digest-mismatch file-not-covered: a.txt[] sub/b c.txt[]"},
		{"a file removed", without(good, "a.txt"), "indeterminate covers-part file-not-covered reference-missing: sub/b c.txt[]"},
		{"a file added", content("c.txt", "third"), "passed covers-part file-not-covered: a.txt[0] sub/b c.txt[0] c.txt[]"},
		{"the list changed", content("META-INF/ASiCManifest1.xml", list(a)), "failed covers-part file-not-covered message-digest-mismatch: a.txt[] sub/b c.txt[]"},
		{"the list removed", without(good, "META-INF/ASiCManifest1.xml"), "indeterminate covers-part file-not-covered manifest-missing: a.txt[] sub/b c.txt[]"},
		{"the signature removed", without(good, "META-INF/signature1.p7s"), "failed no-signature signature-missing: a.txt[] sub/b c.txt[]"},
		{"the signature is nothing", content("META-INF/signature1.p7s", "none"), "failed signature-malformed: a.txt[] sub/b c.txt[]"},
		{"a second list for the signature", content("META-INF/ASiCManifest2.xml", list(a, b)), "indeterminate covers-part file-not-covered manifest-missing: a.txt[] sub/b c.txt[]"},
		{"a list of one file", signed(list(a)), "passed covers-part file-not-covered: a.txt[0] sub/b c.txt[]"},
		{"a list that names a file twice", signed(list(a, a)), "failed covers-part file-not-covered manifest-malformed manifest-missing: a.txt[] sub/b c.txt[]"},
		{"a list that climbs", signed(list(a, b, [2]string{"../x", "x"})), "indeterminate covers-part file-not-covered reference-missing: a.txt[] sub/b c.txt[]"},
		{"a list with an address", signed(list(a, b, [2]string{"file:///etc/passwd", "x"})), "indeterminate covers-part file-not-covered reference-missing: a.txt[] sub/b c.txt[]"},
		{"a list with a name as it is", signed(list(a, [2]string{"sub/b c.txt", "second"})), passed},
		{"no list but XML", content("META-INF/ASiCManifest1.xml", "<a/>"), "failed covers-part file-not-covered manifest-malformed manifest-missing: a.txt[] sub/b c.txt[]"},
		{"another kind", content("mimetype", mimeS), "failed container-kind: a.txt[0] sub/b c.txt[0]"},
		{"an evidence record", content("META-INF/evidencerecord.ers", "x"), "passed evidence-record: a.txt[0] sub/b c.txt[0]"},
		{"a list of an evidence record", content("META-INF/ASiCEvidenceRecordManifest1.xml", "x"), "passed manifest-malformed: a.txt[0] sub/b c.txt[0]"},
		{"an evidence record in XML", content("META-INF/evidencerecord.xml", "x"), "passed evidence-record: a.txt[0] sub/b c.txt[0]"},
		{"a list of OpenDocument", content("META-INF/manifest.xml", "<x/>"), passed},
		{"a file in META-INF", content("META-INF/invoice.pdf", "x"), "passed covers-part file-not-covered: a.txt[0] sub/b c.txt[0] META-INF/invoice.pdf[]"},
		{"a signed file in META-INF", edited(signed(list(a, b, [2]string{"META-INF/invoice.pdf", "x"})), "META-INF/invoice.pdf", func(e *sigtest.ZipEntry) { e.Content = "x" }),
			"passed : a.txt[0] sub/b c.txt[0] META-INF/invoice.pdf[0]"},
		{"mimetype compressed", edited(good, "mimetype", func(e *sigtest.ZipEntry) { e.Store = false }), "passed mimetype: a.txt[0] sub/b c.txt[0]"},
		{"mimetype last", append(without(good, "mimetype"), good[0]), "passed mimetype: a.txt[0] sub/b c.txt[0]"},
		{"no mimetype", without(good, "mimetype"), "passed mimetype: a.txt[0] sub/b c.txt[0]"},
		{"a hidden entry", edited(good, "a.txt", func(e *sigtest.ZipEntry) {
			e.Prefix = string(sigtest.Zip([]sigtest.ZipEntry{{Name: "a.txt", Content: "other", Store: true}}, "")[:40])
		}), "failed hidden-entry: a.txt[0] sub/b c.txt[0]"},
	} {
		if got := describe(verified(t, root, sigtest.Zip(c.entries, ""))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	for _, name := range []string{"c.txt", "META-INF/invoice.pdf"} {
		if r, err := strictly(root, sigtest.Zip(content(name, "third"), ""), ""); err != nil || r.Verdict() != sig.Failed {
			t.Errorf("%s, which is not covered, passes the strict check: %v, %v", name, r, err)
		}
	}
	// Notes do not crowd out what fails.
	crowd := content("META-INF/signature2.p7s", "none")
	for i := range 150 {
		crowd = append(crowd, sigtest.ZipEntry{Name: fmt.Sprintf("META-INF/evidencerecord%d.ers", i), Content: "x"})
	}
	if r := verified(t, root, sigtest.Zip(crowd, "")); r.Verdict() != sig.Failed || !slices.Contains(sigtest.Codes(r), "signature-malformed") {
		t.Errorf("a second signature that is nothing, beside 150 notes: %s", describe(r))
	}
	for expect, want := range map[string]sig.Verdict{"a.txt": sig.Passed, "c.txt": sig.Failed, "d.txt": sig.Failed} {
		if r, err := strictly(root, sigtest.Zip(content("c.txt", "third"), ""), expect); err != nil || r.Verdict() != want {
			t.Errorf("%s expected to be covered: %v, %v", expect, describe(r), err)
		}
	}
}

// Containers that two programs could read differently are refused, with the reason.
func TestRefused(t *testing.T) {
	root, signer := parties(t, suite.ECDSAP256)
	good := byHand(t, signer)
	with := func(names ...string) []sigtest.ZipEntry {
		entries := good
		for _, name := range names {
			entries = append(entries, sigtest.ZipEntry{Name: name, Content: "x"})
		}
		return entries
	}
	bomb := strings.Repeat("\x00", 200<<20)
	for _, c := range []struct {
		name    string
		entries []sigtest.ZipEntry
		want    string
	}{
		{"two files of one name", with("a.txt"), "equivalent names"},
		{"letter case", with("A.txt"), "equivalent names"},
		{"letter case of Russian", with("Б.txt", "б.txt"), "equivalent names"},
		{"form of Unicode", with("e\u0301.txt", "\u00e9.txt"), "equivalent names"},
		{"percent-encoding", with("sub/b%20c.txt"), "equivalent names"},
		{"encoded twice", with("sub/b%2520c.txt"), "equivalent names"},
		{"encoded in pieces", with("sub/b%2%30c.txt"), "equivalent names"},
		{"a dot at the end", with("a.txt."), "equivalent names"},
		{"a space at the end of a folder", with("sub /b c.txt"), "equivalent names"},
		{"a format character", with("a\u202E.txt"), "equivalent names"},
		{"META-INF with a dot", with("META-INF./x"), "exactly these letters"},
		{"two mimetypes", with("mimetype"), "equivalent names"},
		{"two mimetypes by letter case", with("MIMETYPE"), "equivalent names"},
		{"two signatures by letter case", with("meta-inf/Signature1.p7s"), "equivalent names"},
		{"META-INF by letter case", with("Meta-Inf/invoice.pdf"), "exactly these letters"},
		{"META-INF in percent-encoding", with("%4DETA-INF/invoice.pdf"), "exactly these letters"},
		{"the folder META-INF by letter case", append(without(good, "none"), sigtest.ZipEntry{Name: "meta-inf/", Store: true}), "exactly these letters"},
		{"mimetype in percent-encoding", append(without(good, "mimetype"), sigtest.ZipEntry{Name: "%6Dimetype", Content: "x"}), "exactly these letters"},
		{"mimetype by letter case", append(without(good, "mimetype"), sigtest.ZipEntry{Name: "MimeType", Content: "x"}), "exactly these letters"},
		{"a file and a folder", with("sub"), "both a file and a directory"},
		{"climbing", with("../a.txt"), "segment of dots"},
		{"climbing inside", with("sub/../a.txt"), "segment of dots"},
		{"from the top", with("/a.txt"), "begins with a slash"},
		{"backslash", with("sub\\d.txt"), "backslash"},
		{"no UTF-8", with("K\x81ldend"), "not UTF-8"},
		{"another name in the local header", edited(good, "a.txt", func(e *sigtest.ZipEntry) { e.LocalName = "b.txt" }), "different name"},
		{"another method in the directory", edited(good, "a.txt", func(e *sigtest.ZipEntry) { e.Method = 4 }), "compressed by method"},
		{"encrypted", edited(good, "a.txt", func(e *sigtest.ZipEntry) { e.Flags = 1 }), "is encrypted"},
		{"overlapping", edited(good, "sub/b c.txt", func(e *sigtest.ZipEntry) { e.At = 2 }), "different name"},
		{"bomb", edited(good, "a.txt", func(e *sigtest.ZipEntry) { e.Content = bomb }), "decompression bomb"},
		{"no container", []sigtest.ZipEntry{{Name: "a.txt", Content: "1"}}, "a container with signatures (ASiC) expected"},
	} {
		r, err := check(root, sigtest.Zip(c.entries, ""))
		if err == nil {
			t.Errorf("%s: accepted: %s", c.name, describe(r))
		} else if text := refusal(err); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}

// A file whose content does not fit its checksum is not covered, and the rest is still checked.
func TestUnreadableFile(t *testing.T) {
	root, signer := parties(t, suite.ECDSAP256)
	broken := edited(byHand(t, signer), "a.txt", func(e *sigtest.ZipEntry) { e.CRC32 = 1 })
	const want = "indeterminate covers-part file-not-covered reference-failed: a.txt[] sub/b c.txt[]"
	if got := describe(verified(t, root, sigtest.Zip(broken, ""))); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
