// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// levelsOf returns the levels that tamga verify finds in a file, whose verdict must be passed.
func levelsOf(t *testing.T, s *tamgatest.Server, file string, more ...string) []string {
	t.Helper()
	out := s.MustRun(append([]string{"verify", file, "--json", "--data", s.Dir}, more...)...)
	var report struct {
		Verdict    string
		Signatures []struct{ Level string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Verdict != "passed" {
		t.Fatalf("%s: %v %s", file, err, out)
	}
	var levels []string
	for _, one := range report.Signatures {
		if one.Level != "DocTimeStamp" {
			levels = append(levels, one.Level)
		}
	}
	return levels
}

// TestEnhance raises files of every format through a server and without one, and the result is verified offline.
func TestEnhance(t *testing.T) {
	s := tamgatest.StartIn(t, t.TempDir())
	offline := []string{"--tsa", s.Dev.TSPURL, "--ca", s.Path(s.Dev.CAPEM), "--allow-network", "127.0.0.1"}
	for name, c := range map[string]struct {
		content, kind string
		more          []string
		signed        string // name of the signed file
		levels        map[string]string
	}{
		"detached": {"Hello", "CAdES", nil, "detached.txt.sig", map[string]string{"T": "T", "lt": "XLT1", "XLT1": "XLT1", "A": "A"}},
		"attached": {"Hello", "CAdES", []string{"--attached"}, "attached.txt.sig", map[string]string{"A": "A"}},
		"xml":      {"<a><b>c</b></a>", "XMLDSig", []string{"--param", "XAdESType=BES"}, "xml.signed.xml", map[string]string{"T": "T", "LT": "LT", "A": "LTA"}},
		"pdf":      {string(tamgatest.PDFOf(2000)), "PDF", nil, "pdf.signed.pdf", map[string]string{"T": "T", "LT": "LT", "LTA": "LTA"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			document := filepath.Join(dir, strings.Split(c.signed, ".")[0]+map[string]string{"CAdES": ".txt", "XMLDSig": ".xml", "PDF": ".pdf"}[c.kind])
			tamgatest.WriteFile(t, document, c.content)
			signed := filepath.Join(dir, c.signed)
			s.MustRun(append([]string{"sign", document, "--type", c.kind, "-o", signed, "--data", s.Dir}, c.more...)...)
			before := tamgatest.ReadFile(t, signed)
			original := []string{}
			if name == "detached" {
				original = []string{"--original", document}
			}
			for level, want := range c.levels {
				ext := filepath.Ext(signed)
				out := strings.TrimSuffix(signed, ext) + ".enhanced" + ext
				for way, flags := range map[string][]string{"server": {"--data", s.Dir}, "offline": offline} {
					printed := s.MustRun(append([]string{"enhance", signed, "--level", level}, flags...)...)
					if got := levelsOf(t, s, out, original...); !slices.Equal(got, []string{want}) || !strings.Contains(printed, out+": written") {
						t.Errorf("%s, %s: %v\n%s", way, level, got, printed)
					}
					if way == "offline" && !strings.Contains(printed, "levels: "+want) {
						t.Errorf("%s: %s", level, printed)
					}
					if err := os.Remove(out); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !bytes.Equal(tamgatest.ReadFile(t, signed), before) {
				t.Error("the input was changed")
			}
			// In place, twice: the second is the renewal.
			for range 2 {
				s.MustRun("enhance", signed, "--in-place", "--json", "--data", s.Dir)
			}
			if got := levelsOf(t, s, signed, original...); !strings.HasSuffix(got[0], "A") {
				t.Errorf("in place: %v", got)
			}
			// A lower level changes nothing.
			size := len(tamgatest.ReadFile(t, signed))
			r := tamgatest.Run(t.Context(), "", "enhance", signed, "--in-place", "--level", "T", "--data", s.Dir)
			if len(tamgatest.ReadFile(t, signed)) != size {
				t.Errorf("a higher level was changed: %s %s %v", r.Out, r.Err, r.Failure)
			}
		})
	}
}

// TestEnhanceRefuses names what is wrong, and leaves no output.
func TestEnhanceRefuses(t *testing.T) {
	s := tamgatest.Start(t)
	dir := t.TempDir()
	letter := tamgatest.WriteFile(t, filepath.Join(dir, "letter.txt"), "Hello")
	s.MustRun("sign", letter, "--data", s.Dir)
	signed := letter + ".sig"
	office := filepath.Join(dir, "a.docx")
	tamgatest.WriteFile(t, office, string(tamgatest.DOCXOf(t, 2000)))
	inside := tamgatest.WriteFile(t, filepath.Join(dir, "a.xml"), "<a/>")
	s.MustRun("sign", inside, "--type", "XMLDSig", "-o", inside, "--force", "--data", s.Dir)
	ca := s.Path(s.Dev.CAPEM)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"another level":       {[]string{signed, "--level", "B"}, "is no level; want T, LT or A"},
		"a text":              {[]string{letter, "--data", s.Dir}, "is not a signed document"},
		"an Office document":  {[]string{office, "--data", s.Dir}, "have no higher levels"},
		"both ways":           {[]string{signed, "--tsa", "http://a", "--server", "https://b"}, "--tsa needs no server"},
		"trust for a server":  {[]string{signed, "--ca", ca}, "are for --tsa"},
		"lasting T":           {[]string{signed, "--level", "T", "--ending-within", "30", "--data", s.Dir}, "is for the level A"},
		"lasting, no trust":   {[]string{signed, "--ending-within", "30", "--server", "https://b"}, "--ending-within needs --ca"},
		"no trust":            {[]string{signed, "--tsa", "http://a/", "--data", dir}, "--tsa needs --ca"},
		"no address":          {[]string{signed, "--tsa", "a", "--ca", ca}, "is no address"},
		"a network":           {[]string{signed, "--tsa", "http://a/", "--ca", ca, "--allow-network", "%"}, "--allow-network"},
		"-o with --in-place":  {[]string{signed, "--in-place", "-o", "x"}, "leave out -o"},
		"one document of two": {[]string{signed, letter, "--document", letter}, "one by one"},
		"another document":    {[]string{signed, "--document", office, "--tsa", s.Dev.TSPURL, "--ca", ca}, "OriginalDocument"},
		"a document inside":   {[]string{inside, "--document", letter, "--tsa", s.Dev.TSPURL, "--ca", ca}, "signatures are inside of it"},
		"a closed service":    {[]string{signed, "--tsa", "http://127.0.0.1:1/tsp", "--ca", ca}, "time stamp"},
	} {
		r := tamgatest.Run(t.Context(), "", append([]string{"enhance"}, c.args...)...)
		if r.Failure == nil || !strings.Contains(r.Err+r.Failure.Error(), c.says) {
			t.Errorf("%s: %v %s", name, r.Failure, r.Err)
		}
	}
	if names := tamgatest.Listing(t, dir); !slices.Equal(names, []string{"a.docx", "a.xml", "letter.txt", "letter.txt.sig"}) {
		t.Errorf("left: %q", names)
	}
}

// TestEnhanceFolder raises the files of a folder, goes on after a stop, and counts what has no signatures.
func TestEnhanceFolder(t *testing.T) {
	s := tamgatest.StartIn(t, t.TempDir())
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	var signed []string
	for i, name := range []string{"a.txt", "b.txt", "below/c.txt"} {
		path := tamgatest.WriteFile(t, filepath.Join(dir, name), fmt.Sprint("Hello ", i))
		s.MustRun("sign", path, "--data", s.Dir)
		signed = append(signed, path+".sig")
	}
	tamgatest.WriteFile(t, filepath.Join(dir, "plain.xml"), "<a/>")
	office := tamgatest.WriteFile(t, filepath.Join(dir, "a.docx"), string(tamgatest.DOCXOf(t, 2000)))
	s.MustRun("sign", office, "--type", "MSOffice", "-o", office, "--force", "--data", s.Dir)
	if err := os.Symlink("../a.txt.sig", filepath.Join(below, "link.sig")); err != nil {
		t.Fatal(err)
	}
	offline := []string{"--tsa", s.Dev.TSPURL, "--ca", s.Path(s.Dev.CAPEM), "--allow-network", "127.0.0.1"}
	for way, flags := range map[string][]string{"server": {"--data", s.Dir}, "offline": offline} {
		out := s.MustRun(append([]string{"enhance", dir}, flags...)...)
		for _, path := range signed {
			raised := strings.TrimSuffix(path, ".sig") + ".enhanced.sig"
			if got := levelsOf(t, s, raised, "--original", strings.TrimSuffix(path, ".sig")); !slices.Equal(got, []string{"A"}) || !strings.Contains(out, raised+": written") {
				t.Errorf("%s: %v\n%s", way, got, out)
			}
		}
		if want := "3 raised, 0 had the level, 0 were done before, 0 failed; 4 files without signatures, 1 whose signatures have no levels."; !strings.Contains(out, want) {
			t.Errorf("%s: %s, want %s", way, out, want)
		}
		// It goes on where it was stopped, and a file that cannot be raised stops no other.
		if err := os.Remove(filepath.Join(dir, "b.txt.enhanced.sig")); err != nil {
			t.Fatal(err)
		}
		broken := bytes.Clone(tamgatest.ReadFile(t, signed[0]))
		broken[len(broken)-20] ^= 1
		tamgatest.WriteFile(t, filepath.Join(dir, "0.sig"), string(broken))
		r := tamgatest.Run(t.Context(), "", append([]string{"enhance", dir, "--json"}, flags...)...)
		var lines []struct{ Input, File, Error string }
		for line := range strings.Lines(r.Out) {
			var one struct{ Input, File, Error string }
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				t.Fatal(err, line)
			}
			lines = append(lines, one)
		}
		if len(lines) != 2 || lines[0].Error == "" || !strings.HasSuffix(lines[1].File, "b.txt.enhanced.sig") || r.Code != 1 || !strings.Contains(fmt.Sprint(r.Failure), "1 of 2 files are not raised") {
			t.Errorf("%s: %d %+v %s", way, r.Code, lines, r.Failure)
		}
		for _, name := range tamgatest.Listing(t, dir) {
			if name == "0.sig" || strings.Contains(name, ".enhanced.") {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Remove(filepath.Join(below, "c.txt.enhanced.sig")); err != nil {
			t.Fatal(err)
		}
	}
	// What lasts is left out, and what ends soon is renewed.
	s.MustRun("enhance", dir, "--in-place", "--data", s.Dir)
	sizes := func() (list []int) {
		for _, path := range signed {
			list = append(list, len(tamgatest.ReadFile(t, path)))
		}
		return list
	}
	for way, flags := range map[string][]string{"server": {"--data", s.Dir}, "offline": offline} {
		for days, want := range map[string]string{"30": "0 raised, 3 had the level", "40000": "3 raised, 0 had the level"} {
			before := sizes()
			out := s.MustRun(append([]string{"enhance", dir, "--in-place", "--ending-within", days}, flags...)...)
			if !strings.Contains(out, want) || slices.Equal(before, sizes()) != (days == "30") {
				t.Errorf("%s, %s days: %s", way, days, out)
			}
		}
	}
	r := tamgatest.Run(t.Context(), "", "enhance", dir, "--document", office, "--data", s.Dir)
	if r.Code == 0 || !strings.Contains(fmt.Sprint(r.Failure), "are for single files") {
		t.Errorf("%d %s", r.Code, r.Err)
	}
}
