// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// StateHeader begins every prepared state: a format embeds it in front of the fields of
// its own. [StateForm.Header] fills it.
type StateHeader struct {
	Version     int    `json:"v"`                     // of the form of the state
	Certificate []byte `json:"certificate,omitempty"` // SHA-256 of the signer's certificate
	Size        int64  `json:"size,omitempty"`        // bytes of the job's Document
}

// StateForm names the states of one format and the versions that its Finish reads.
type StateForm struct {
	// What the state is of, for errors: "a PDF signature".
	What string
	// First is the oldest version that Finish reads, Version the one that Prepare writes.
	// Finish must read every version that a release wrote.
	First, Version int
	// Several reports that a signature of the format may cover several documents (Job.Files). The
	// format then compares all of them with its state.
	Several bool
	// JSON is the last version that was written as JSON. Later ones are written by MarshalState:
	// JSON took a tenth of the time of a signature.
	JSON int
}

// Header returns the header of a state for a job.
func (f StateForm) Header(job *Job) StateHeader {
	return StateHeader{Version: f.Version, Certificate: job.Certificate.Digest(suite.SHA256), Size: job.Document.Size()}
}

// State is what a format keeps between Prepare and Finish, after a [StateHeader].
type State interface {
	// Common is that of the embedded StateHeader.
	Common() *StateHeader
	// Fields names all fields to f, always in the same order.
	Fields(f *Fields)
}

// MarshalState writes a state in the form that OpenState reads: the version in one byte, then the
// fields. size is about how many bytes it takes.
func MarshalState(st State, size int) []byte {
	f := &Fields{rest: append(make([]byte, 0, size), byte(st.Common().Version))}
	st.Fields(f)
	return f.rest
}

// OpenState reads the state that was prepared for a job into st and checks its version. Slices of st may
// share memory with prepared. The error is an *ErrState, or an *ErrParams for a job with Files unless the
// format signs Several documents.
func OpenState(form StateForm, job *Job, prepared []byte, st State) error {
	if faults := job.refuseFiles(); faults != nil && !form.Several {
		return &ErrParams{Faults: faults}
	}
	if len(prepared) == 0 {
		return unreadable()
	}
	h := st.Common()
	if prepared[0] == '{' && form.JSON > 0 {
		if err := json.Unmarshal(prepared, st); err != nil {
			return unreadable()
		}
		if err := form.Check(h.Version); err != nil {
			return err
		}
		if h.Version > form.JSON {
			return unreadable()
		}
		return nil
	}
	h.Version = int(prepared[0])
	if err := form.Check(h.Version); err != nil {
		return err
	}
	f := &Fields{reading: true, rest: prepared[1:]}
	st.Fields(f)
	if f.broken || len(f.rest) > 0 || h.Version <= form.JSON {
		return unreadable()
	}
	return nil
}

func unreadable() error { return &ErrState{Text: "cannot be read"} }

// Fields writes the fields of a state one after another, or reads them. All numbers are big-endian.
type Fields struct {
	reading bool
	rest    []byte // what was written so far, or what is left to read
	broken  bool   // what was left is not such a field
}

// Header writes or reads the certificate and the size of a header.
func (f *Fields) Header(h *StateHeader) {
	f.Bytes(&h.Certificate)
	Number(f, &h.Size)
}

// Number writes or reads a number that is not negative, in eight bytes.
func Number[T int | int64](f *Fields, n *T) {
	if !f.reading {
		f.rest = binary.BigEndian.AppendUint64(f.rest, uint64(*n))
	} else if b := f.take(8); b != nil {
		*n = T(binary.BigEndian.Uint64(b))
		f.broken = f.broken || *n < 0
	}
}

// Count writes or reads a number in four bytes: a length, or a position in a list.
func (f *Fields) Count(n *int) {
	if !f.reading {
		f.rest = binary.BigEndian.AppendUint32(f.rest, uint32(*n))
	} else if b := f.take(4); b != nil {
		count := binary.BigEndian.Uint32(b)
		f.broken = f.broken || count > math.MaxInt32
		*n = int(count)
	}
}

// Flags writes or reads up to eight truth values in one byte.
func (f *Fields) Flags(set ...*bool) {
	if !f.reading {
		var b byte
		for i, on := range set {
			if *on {
				b |= 1 << i
			}
		}
		f.rest = append(f.rest, b)
	} else if b := f.take(1); b != nil {
		f.broken = f.broken || int(b[0]) >= 1<<len(set)
		for i, on := range set {
			*on = b[0]>>i&1 != 0
		}
	}
}

// Bytes writes or reads bytes after their length. It reads nil for the length 0.
func (f *Fields) Bytes(b *[]byte) {
	n := len(*b)
	if f.Count(&n); f.reading {
		*b = f.take(n)
	} else {
		f.rest = append(f.rest, *b...)
	}
}

// Text writes or reads a text after its length. One of the usual ones takes no memory.
func (f *Fields) Text(s *string, usual ...string) {
	n := len(*s)
	if f.Count(&n); !f.reading {
		f.rest = append(f.rest, *s...)
		return
	}
	b := f.take(n)
	for _, w := range usual {
		if string(b) == w {
			*s = w
			return
		}
	}
	*s = string(b)
}

// List writes or reads a list after its length. each names the fields of an element, of which
// there must be at least one.
func List[T any](f *Fields, list *[]T, each func(*T)) {
	n := len(*list)
	if f.Count(&n); f.reading {
		*list = nil
	}
	for i := 0; i < n && !f.broken; i++ {
		if f.reading {
			*list = append(*list, *new(T))
		}
		each(&(*list)[i])
	}
}

// take returns the next n bytes. It returns nil if n is 0 or fewer are left.
func (f *Fields) take(n int) []byte {
	if f.broken = f.broken || n > len(f.rest); f.broken || n == 0 {
		return nil
	}
	b := f.rest[:n:n]
	f.rest = f.rest[n:]
	return b
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

// Common returns the header itself, for [State].
func (h *StateHeader) Common() *StateHeader { return h }

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
