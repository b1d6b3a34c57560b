// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestNamesOfDownloads checks that the name of a download is one name, without folders and without characters that
// forge another one.
func TestNamesOfDownloads(t *testing.T) {
	for name, want := range map[string]string{
		"a b.sig": `attachment; filename="a b.sig"`, "../../../etc/passwd": `attachment; filename=passwd`,
		`C:\dir\a.pdf`: `attachment; filename=a.pdf`, "a.pdf:stream": `attachment; filename=a.pdf_stream`,
		"..": `attachment; filename=document`, "dir/": `attachment; filename=document`, " . ": `attachment; filename=document`,
		"a\r\nX: y": `attachment; filename="a__X_ y"`, "fdp\u202eexe.pdf": `attachment; filename=fdp_exe.pdf`, "": "",
		"договор.pdf": `attachment; filename*=utf-8''%D0%B4%D0%BE%D0%B3%D0%BE%D0%B2%D0%BE%D1%80.pdf`,
	} {
		a, err := prepare(File{Content: strings.NewReader("x"), Name: name})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if err := a.send(w); err != nil {
			t.Fatal(err)
		}
		if got := w.Header().Get("Content-Disposition"); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
