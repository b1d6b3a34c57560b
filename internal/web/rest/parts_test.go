// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// partsOf reads a body part by part: the names of the parts, and what they hold.
func partsOf(body io.Reader, kind string) (names, contents []string, err error) {
	r := httptest.NewRequest("POST", "/", body)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	open := func(context.Context, audit.Principal) (*memorySink, error) { return &memorySink{}, nil }
	route := HandleDocuments("POST /x", "X", Anyone, open, func(_ context.Context, docs *Documents[*memorySink], r struct{ Body Parts }) (None, error) {
		for {
			p, err := r.Body.Next()
			if err == io.EOF {
				return None{}, nil
			}
			if err != nil {
				return None{}, err
			}
			names = append(names, p.Name)
			s, err := docs.Open(p)
			if err != nil {
				return None{}, err
			}
			contents = append(contents, s.String())
		}
	})
	_, err = route.call(r.Context(), &input{http: r, body: newBody(httptest.NewRecorder(), r, 1<<20), documents: 3})
	return names, contents, err
}

type memorySink struct{ bytes.Buffer }

func (*memorySink) Finish() error                 { return nil }
func (*memorySink) Close() error                  { return nil }
func (*memorySink) Sibling() (*memorySink, error) { return &memorySink{}, nil }

func partOf(name, content string) string {
	return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + content + "\r\n"
}

const formType = "multipart/form-data; boundary=b"

func TestPartsReadsWhatIsThere(t *testing.T) {
	whole := "preamble\r\n" + partOf("a_info", "{}") + partOf("a_content", "bytes\r\n--bc\r\n") + "--b--\r\nepilogue"
	names, contents, err := partsOf(strings.NewReader(whole), formType)
	if err != nil || fmt.Sprint(names) != "[a_info a_content]" || contents[1] != "bytes\r\n--bc\r\n" {
		t.Errorf("%v %q %v", names, contents, err)
	}
}

// Every way in which a body can stop short of its last boundary is told from a whole
// one.
func TestPartsStoppedAnywhere(t *testing.T) {
	whole := partOf("a_info", "{}") + partOf("a_content", "bytes") + "--b--"
	for n := range len(whole) {
		if _, _, err := partsOf(strings.NewReader(whole[:n]), formType); err == nil {
			t.Errorf("%q is taken for a whole body", whole[:n])
		} else if _, ok := fault.As(err); !ok && !errors.As(err, new(*errLost)) {
			t.Errorf("%q: %v is no fault", whole[:n], err)
		}
	}
	if _, _, err := partsOf(strings.NewReader(whole), formType); err != nil {
		t.Error(err)
	}
}

func TestPartsRefuses(t *testing.T) {
	for name, c := range map[string]struct{ body, kind, code string }{
		"no type":            {"x", "", fault.InvalidParameters},
		"another type":       {"x", "application/json", fault.InvalidParameters},
		"no boundary":        {"x", "multipart/form-data", fault.InvalidParameters},
		"a long boundary":    {"x", "multipart/form-data; boundary=" + strings.Repeat("b", 71), fault.InvalidParameters},
		"many parts":         {partOf("a", "") + partOf("b", "") + partOf("c", "") + partOf("d", "") + partOf("e", "") + partOf("f", "") + partOf("g", "") + "--b--", formType, fault.InvalidParameters},
		"a long header":      {"--b\r\nX: " + strings.Repeat("x", 100_000) + "\r\n\r\n\r\n--b--", formType, fault.TooLarge},
		"many headers":       {"--b\r\n" + strings.Repeat("X: x\r\n", 20_000) + "\r\n\r\n--b--", formType, fault.TooLarge},
		"a long preamble":    {strings.Repeat("x\r\n", 50_000) + partOf("a", "") + "--b--", formType, fault.TooLarge},
		"a broken header":    {"--b\r\nno colon\r\n\r\n\r\n--b--", formType, fault.InvalidParameters},
		"more than its size": {partOf("a", strings.Repeat("x", 2<<20)) + "--b--", formType, fault.TooLarge},
	} {
		if _, _, err := partsOf(strings.NewReader(c.body), c.kind); !fault.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

func FuzzParts(f *testing.F) {
	f.Add([]byte(partOf("a_info", "{}") + "--b--"))
	f.Add([]byte("--b\r\n\r\n--b--"))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, contents, err := partsOf(bytes.NewReader(body), formType)
		if err == nil && !bytes.Contains(body, []byte("--b--")) {
			t.Errorf("a body without its last boundary is whole: %q", contents)
		}
		if _, ok := fault.As(err); err != nil && !ok && !errors.As(err, new(*errLost)) {
			t.Errorf("%v is no fault", err)
		}
	})
}
