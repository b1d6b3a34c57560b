// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestPreparedInRow: a document of at most Options.InRow bytes is in its name and in no file. Every form opens
// whatever the limit is by then.
func TestPreparedInRow(t *testing.T) {
	const limit = 1000
	for _, plain := range []bool{false, true} {
		dir := t.TempDir()
		storage, err := NewDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		ring := newRing(t)
		with := func(limit int64) *Prepared {
			return NewPrepared(Options{Storage: storage, Ring: ring, Plain: plain, InRow: limit})
		}
		d := with(limit)
		for _, size := range []int{0, 1, limit - 1, limit, limit + 1} {
			want := sample(size)
			name, err := d.KeepBlob(t.Context(), bytes.NewReader(want), noon.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			inRow := size <= limit
			if InRow(name) != inRow {
				t.Errorf("%d bytes: in the row %v", size, InRow(name))
			}
			if files, err := os.ReadDir(dir); err != nil || (len(files) == 0) != inRow {
				t.Errorf("%d bytes: %v, %v", size, files, err)
			}
			if !plain && inRow && size > 10 && strings.Contains(name, base64.RawStdEncoding.EncodeToString(want[:9])) {
				t.Errorf("%d bytes can be read in the name", size)
			}
			for _, later := range []int64{0, limit, 1 << 20} {
				o, err := with(later).OpenBlob(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				readsAs(t, o, want)
				if err := o.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := d.RemoveBlob(t.Context(), name); err != nil {
				t.Error(err)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
				t.Errorf("%d bytes: after the removal there are %v, %v", size, files, err)
			}
		}
	}
}

// TestPreparedInRowChanged: a changed name does not open.
func TestPreparedInRowChanged(t *testing.T) {
	storage, err := NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := NewPrepared(Options{Storage: storage, Ring: newRing(t), InRow: 1000})
	kept := func(content string) (name, stored string) {
		all, err := d.KeepBlob(t.Context(), strings.NewReader(content), noon)
		if err != nil {
			t.Fatal(err)
		}
		name, stored, _ = strings.Cut(all, afterName)
		return name, stored
	}
	name, stored := kept("document")
	other, _ := kept("document")
	raw, err := base64.RawStdEncoding.DecodeString(stored)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(raw)
	changed[len(changed)-1] ^= 1
	for what, text := range map[string]string{
		"another name":   other + afterName + stored,
		"a changed byte": name + afterName + base64.RawStdEncoding.EncodeToString(changed),
		"cut":            name + afterName + base64.RawStdEncoding.EncodeToString(raw[:len(raw)-1]),
		"no content":     name + afterName,
		"no Base64":      name + afterName + "%",
	} {
		_, err := d.OpenBlob(t.Context(), text)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), text[:20]) || strings.Contains(err.Error(), afterName+stored[:10]) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, text := range []string{"../x" + afterName + stored, afterName + stored, ""} {
		if _, err := d.OpenBlob(t.Context(), text); err == nil {
			t.Errorf("%q opens", abbreviated(text))
		}
		if err := d.RemoveBlob(t.Context(), text); err == nil {
			t.Errorf("%q is removed", abbreviated(text))
		}
	}
}

func abbreviated(s string) string { return s[:min(len(s), 20)] }
