// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"bytes"
	"encoding/json"
	"fmt"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// StateHeader begins every prepared state: a format embeds it in front of the fields of
// its own. [StateForm.Header] fills it.
type StateHeader struct {
	Version     int    `json:"v"`                     // of the form of the state
	Certificate []byte `json:"certificate,omitempty"` // SHA-256 of the signer's certificate
	Size        int64  `json:"size,omitempty"`        // bytes of the job's document
}

// StateForm names the states of one format and the versions that its Finish reads.
type StateForm struct {
	// What the state is of, for errors: "a PDF signature".
	What string
	// First is the oldest version that Finish reads, Version the one that Prepare writes.
	// Finish must read every version that a release wrote.
	First, Version int
}

// Header returns the header of a state for a job.
func (f StateForm) Header(job *Job) StateHeader {
	return StateHeader{Version: f.Version, Certificate: job.Certificate.Digest(suite.SHA256), Size: job.Document.Size()}
}

// OpenState reads a state that was written as JSON into st and checks its version. The
// error is an *ErrState.
func OpenState(f StateForm, prepared []byte, st interface{ header() *StateHeader }) error {
	if err := json.Unmarshal(prepared, st); err != nil {
		return &ErrState{Text: "cannot be read"}
	}
	return f.Check(st.header().Version)
}

// Check returns an *ErrState unless the version is one that Finish reads.
func (f StateForm) Check(version int) error {
	if f.First <= version && version <= f.Version {
		return nil
	}
	expected := fmt.Sprint(f.Version)
	if f.First < f.Version {
		expected = fmt.Sprintf("%d to %d", f.First, f.Version)
	}
	return &ErrState{Text: fmt.Sprintf("version %d of %s is not known; %s expected", version, f.What, expected)}
}

func (h *StateHeader) header() *StateHeader { return h }

// CheckCertificate returns an *ErrState unless the state was made for the certificate.
func (h *StateHeader) CheckCertificate(c *x509gost.Certificate) error {
	if c == nil {
		return &ErrState{Text: "the certificate is needed"}
	}
	if !bytes.Equal(h.Certificate, c.Digest(suite.SHA256)) {
		return &ErrState{Text: "made for another certificate"}
	}
	return nil
}

// CheckSize returns an *ErrState unless there is a document of the size that the state was
// made for.
func (h *StateHeader) CheckSize(d Document) error {
	if d == nil {
		return &ErrState{Text: "the document is needed"}
	}
	if n := d.Size(); n != h.Size {
		return &ErrState{Text: fmt.Sprintf("made for a document of %d bytes, not %d", h.Size, n)}
	}
	return nil
}
