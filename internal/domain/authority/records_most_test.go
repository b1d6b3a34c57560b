// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"encoding/binary"
	"testing"
)

// TestRecordsAreBounded: callers choose which certificates they ask about.
func TestRecordsAreBounded(t *testing.T) {
	var r records
	st := State{Name: "gost", CRLNumber: 1}
	for n := range uint32(3*recordsMost + 5) {
		serial := binary.BigEndian.AppendUint32(nil, n)
		r.keep(st, Issued{Serial: serial, Authority: "gost", Reason: int(n)})
		if i, has := r.at(st, serial); !has || i.Reason != int(n) {
			t.Fatalf("record %d is not kept", n)
		}
	}
	if len(r.kept) > recordsMost {
		t.Errorf("%d records are kept, want at most %d", len(r.kept), recordsMost)
	}
	if _, has := r.at(State{Name: "gost", CRLNumber: 2}, binary.BigEndian.AppendUint32(nil, 3*recordsMost+4)); has {
		t.Error("a record of another list")
	}
}
