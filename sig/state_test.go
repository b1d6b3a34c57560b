// SPDX-License-Identifier: Apache-2.0

package sig_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"tamga/pki/x509gost"
	"tamga/sig"
)

// TestOpenState: a state is read by the versions of its form only, and for the job that it
// was made for.
func TestOpenState(t *testing.T) {
	type state struct {
		sig.StateHeader
		Rest string `json:"rest"`
	}
	form := sig.StateForm{What: "a trial", First: 2, Version: 3}
	job := &sig.Job{Document: bytes.NewReader([]byte("text")), Certificate: &x509gost.Certificate{Raw: []byte("one")}}
	written, err := json.Marshal(state{form.Header(job), "kept"})
	if err != nil {
		t.Fatal(err)
	}
	var st state
	if err := sig.OpenState(form, written, &st); err != nil || st.Version != 3 || st.Rest != "kept" {
		t.Fatalf("%+v, %v", st, err)
	}
	if err := st.CheckCertificate(job.Certificate); err != nil {
		t.Error(err)
	}
	if err := st.CheckSize(job.Document); err != nil {
		t.Error(err)
	}
	open := func(text string) error { return sig.OpenState(form, []byte(text), new(state)) }
	single := sig.StateForm{What: "a trial", First: 1, Version: 1}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"oldest":              {open(`{"v":2}`), ""},
		"too old":             {open(`{"v":1}`), "prepared state: version 1 of a trial is not known; 2 to 3 expected"},
		"of a later release":  {open(`{"v":4}`), "prepared state: version 4 of a trial is not known; 2 to 3 expected"},
		"of the only version": {single.Check(2), "prepared state: version 2 of a trial is not known; 1 expected"},
		"no state":            {open(`[]`), "prepared state: cannot be read"},
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
