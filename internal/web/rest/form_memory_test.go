// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http/httptest"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"tamga/internal/domain/fault"
)

// TestFormMemory: a form of many short parameters, each of which takes far more memory than text, is
// refused before it is parsed.
func TestFormMemory(t *testing.T) {
	var text strings.Builder
	for i := range 100_000 {
		text.WriteString(strconv.FormatInt(int64(i), 36))
		text.WriteByte('&')
	}
	bind := func(text string) (Form, error) {
		var f Form
		r := httptest.NewRequest("POST", "/", strings.NewReader(text))
		err := bindForm(&input{http: r, body: newBody(httptest.NewRecorder(), r, 1<<20)}, reflect.ValueOf(&f).Elem(), lists{"*"})
		return f, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := bind(text.String())
	runtime.ReadMemStats(&after)
	if f, ok := fault.As(err); !ok || f.Code != fault.TooLarge {
		t.Errorf("%v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(10*text.Len()) {
		t.Errorf("%d KiB were allocated for a form of %d KiB", took>>10, text.Len()>>10)
	}
	if f, err := bind(strings.Repeat("a=b&", maxParameters-1) + "a=c"); err != nil || len(f["a"]) != maxParameters {
		t.Errorf("%d parameters, %v", len(f["a"]), err)
	}
}
