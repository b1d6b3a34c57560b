// SPDX-License-Identifier: Apache-2.0

package sig_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"tamga/pki/x509gost"
	"tamga/sig"
)

// trial is a state with a field of every kind.
type trial struct {
	sig.StateHeader
	Rest    string `json:"rest"`
	On, Off bool
	Data    []byte
	Number  int
	List    []string
}

func (st *trial) Fields(f *sig.Fields) {
	f.Header(&st.StateHeader)
	f.Text(&st.Rest, "usual")
	f.Flags(&st.On, &st.Off)
	f.Bytes(&st.Data)
	sig.Number(f, &st.Number)
	sig.List(f, &st.List, func(s *string) { f.Text(s) })
}

// TestMarshalState: a state is read as it was written, and no other bytes are read.
func TestMarshalState(t *testing.T) {
	form := sig.StateForm{What: "a trial", First: 1, JSON: 1, Version: 2}
	job := &sig.Job{Document: bytes.NewReader([]byte("text")), Certificate: &x509gost.Certificate{Raw: []byte("one")}}
	for _, want := range []trial{
		{StateHeader: form.Header(job), Rest: "usual", On: true, Data: []byte{1, 2}, Number: 1 << 40, List: []string{"", "b"}},
		{StateHeader: form.Header(job), Rest: "other"},
	} {
		written := sig.MarshalState(&want, 0)
		var got trial
		if err := sig.OpenState(form, new(sig.Job), written, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v (%v)", got, want, err)
		}
		for n := range written {
			if sig.OpenState(form, new(sig.Job), written[:n], new(trial)) == nil {
				t.Errorf("the first %d bytes are read", n)
			}
		}
		if sig.OpenState(form, new(sig.Job), append(bytes.Clone(written), 0), new(trial)) == nil {
			t.Error("one byte more is read")
		}
	}
	spoil := func(at int, to byte) error {
		b := sig.MarshalState(&trial{StateHeader: sig.StateHeader{Version: 2}}, 0)
		b[at] = to
		return sig.OpenState(form, new(sig.Job), b, new(trial))
	}
	// The header has 1+4+8 bytes, then come the lengths of the fields.
	for name, err := range map[string]error{
		"the version of JSON": spoil(0, 1), "an unknown flag": spoil(17, 4), "bytes without an end": spoil(18, 0xff),
		"a negative size": spoil(5, 0x80), "a negative number": spoil(22, 0x80), "a list without elements": spoil(33, 0x7f),
	} {
		if err == nil || err.Error() != "prepared state: cannot be read" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpenState: a state is read by the versions of its form only, and for the job that it
// was made for.
func TestOpenState(t *testing.T) {
	type state = trial
	form := sig.StateForm{What: "a trial", First: 2, JSON: 3, Version: 4}
	job := &sig.Job{Document: bytes.NewReader([]byte("text")), Certificate: &x509gost.Certificate{Raw: []byte("one")}}
	written, err := json.Marshal(state{StateHeader: form.Header(job), Rest: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	written = bytes.Replace(written, []byte(`"v":4`), []byte(`"v":3`), 1)
	var st state
	if err := sig.OpenState(form, new(sig.Job), written, &st); err != nil || st.Version != 3 || st.Rest != "kept" {
		t.Fatalf("%+v, %v", st, err)
	}
	if err := st.CheckCertificate(job.Certificate); err != nil {
		t.Error(err)
	}
	if err := st.CheckSize(job.Document); err != nil {
		t.Error(err)
	}
	open := func(text string) error { return sig.OpenState(form, new(sig.Job), []byte(text), new(state)) }
	single := sig.StateForm{What: "a trial", First: 1, Version: 1}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"oldest":              {open(`{"v":2}`), ""},
		"too old":             {open(`{"v":1}`), "prepared state: version 1 of a trial is not known; 2 to 4 expected"},
		"of a later release":  {open(`{"v":5}`), "prepared state: version 5 of a trial is not known; 2 to 4 expected"},
		"too late for JSON":   {open(`{"v":4}`), "prepared state: cannot be read"},
		"of the only version": {single.Check(2), "prepared state: version 2 of a trial is not known; 1 expected"},
		"no state":            {open(""), "prepared state: cannot be read"},
		"no JSON":             {open("{"), "prepared state: cannot be read"},
		"no certificate":      {st.CheckCertificate(nil), "prepared state: the certificate is needed"},
		"another certificate": {st.CheckCertificate(&x509gost.Certificate{Raw: []byte("two")}), "prepared state: made for another certificate"},
		"no document":         {st.CheckSize(nil), "prepared state: the document is needed"},
		"another document":    {st.CheckSize(bytes.NewReader(nil)), "prepared state: made for a document of 4 bytes, not 0"},
	} {
		text := ""
		if test.err != nil {
			text = test.err.Error()
		}
		if text != test.want {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
	}
}
