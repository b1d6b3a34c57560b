// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"tamga/sig"
)

var stateForm = sig.StateForm{What: "a PDF signature", First: 1, JSON: 1, Version: 2}

// state is all that Finish needs in addition to the job's document and certificates.
type state struct {
	sig.StateHeader
	Print   []byte `json:"print"`  // see fingerprint
	Format  string `json:"format"` // PDFFormat
	Address string `json:"address,omitempty"`
	Room    int    `json:"room"` // bytes of Contents
	// Fixed and Key are for remembering the size of the evidence, see room.
	Fixed int    `json:"fixed,omitempty"`
	Key   []byte `json:"key,omitempty"`
	Head  []byte `json:"head"` // the new section up to its hole
	Tail  []byte `json:"tail"` // the new section after its hole
	// Signature is the number of the signature dictionary.
	Signature int    `json:"signature,omitempty"`
	Message   []byte `json:"message"`
	// Revision is the data for the document security store, nil without one.
	Revision *revision `json:"revision,omitempty"`
}

// revision describes another revision after the one with the signature. Its texts are PDF
// syntax, with encrypted strings if the document is encrypted.
type revision struct {
	Encrypted bool   `json:"encrypted,omitempty"`
	Stream    bool   `json:"stream,omitempty"` // the section is a stream
	Trailer   string `json:"trailer"`          // without Size and Prev
	Prev      int64  `json:"prev"`
	Next      int    `json:"next"` // the next free object number
	Bias      int64  `json:"bias,omitempty"`
	Catalog   [2]int `json:"catalog"` // number and generation
	Root      string `json:"root"`    // the entries of the catalog without DSS
	Store     [2]int `json:"store"`   // of the DSS
	// The present content of the store: the items of its arrays, the entries of VRI, and
	// its other entries.
	Certs string `json:"certs,omitempty"`
	CRLs  string `json:"crls,omitempty"`
	OCSPs string `json:"ocsps,omitempty"`
	VRI   string `json:"vri,omitempty"`
	More  string `json:"more,omitempty"`
}

func (st *state) marshal(job *sig.Job) ([]byte, error) {
	st.StateHeader = stateForm.Header(job)
	var err error
	if !job.Again { // a second step may bring another document
		if st.Print, err = fingerprint(job.Document); err != nil {
			return nil, err
		}
	}
	return sig.MarshalState(st, 1<<10+len(st.Head)+len(st.Tail)+len(st.Message)), nil
}

// Fields implements sig.State.
func (st *state) Fields(f *sig.Fields) {
	f.Header(&st.StateHeader)
	f.Bytes(&st.Print)
	f.Text(&st.Format)
	f.Text(&st.Address)
	sig.Number(f, &st.Room)
	sig.Number(f, &st.Fixed)
	f.Bytes(&st.Key)
	f.Bytes(&st.Head)
	f.Bytes(&st.Tail)
	sig.Number(f, &st.Signature)
	f.Bytes(&st.Message)
	more := st.Revision != nil
	if f.Flags(&more); !more {
		return
	}
	if st.Revision == nil {
		st.Revision = new(revision)
	}
	r := st.Revision
	f.Flags(&r.Encrypted, &r.Stream)
	sig.Number(f, &r.Prev)
	sig.Number(f, &r.Bias)
	for _, n := range []*int{&r.Next, &r.Catalog[0], &r.Catalog[1], &r.Store[0], &r.Store[1]} {
		sig.Number(f, n)
	}
	for _, s := range []*string{&r.Trailer, &r.Root, &r.Certs, &r.CRLs, &r.OCSPs, &r.VRI, &r.More} {
		f.Text(s)
	}
}

// fingerprint distinguishes documents by their size and both ends. So the second step
// does not read a large document again only to recognise it.
func fingerprint(d sig.Document) ([]byte, error) {
	const end = 64 << 10
	h := sha256.New()
	size := d.Size()
	fmt.Fprint(h, size, ";")
	buf := make([]byte, min(size, end))
	for _, at := range []int64{0, size - int64(len(buf))} {
		if n, err := d.ReadAt(buf, at); n < len(buf) {
			return nil, readFailed(err, at)
		}
		h.Write(buf)
	}
	return h.Sum(nil), nil
}

// readState reads a prepared state and checks that it was made for this job.
func readState(job *sig.Job, prepared []byte) (*state, error) {
	var st state
	if err := sig.OpenState(stateForm, job, prepared, &st); err != nil {
		return nil, err
	}
	if level, ok := levelOf(st.Format); !ok || st.Room <= 0 || st.Room > maxRoom || len(st.Head) == 0 || len(st.Tail) == 0 ||
		(level >= sig.LevelLongTerm) != (st.Revision != nil) {
		return nil, &sig.ErrState{Text: "damaged"}
	}
	if err := st.CheckCertificate(job.Certificate); err != nil {
		return nil, err
	}
	if err := st.CheckSize(job.Document); err != nil {
		return nil, err
	}
	if job.Again {
		return &st, nil
	}
	print, err := fingerprint(job.Document)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(print, st.Print) {
		return nil, &sig.ErrState{Text: "made for another document"}
	}
	return &st, nil
}
