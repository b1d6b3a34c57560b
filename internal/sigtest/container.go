// SPDX-License-Identifier: Apache-2.0

package sigtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"tamga/pki/suite"
	"tamga/sig"
)

// Container is a format for tests that signs several documents with one signature: a line for each
// document with its name, size and digest, an empty line, a line with the signature value, and then the
// documents. The value is over the lines.
type Container struct{}

var _ sig.Described = Container{}

// containerMark is the first line of a file.
const containerMark = "container\n"

// ContainerAlone is a parameter of Container: True makes it sign one document.
const ContainerAlone = "ContainerAlone"

var containerForm = sig.StateForm{What: "a signature in a container", First: 1, Version: 1, Several: true}

// containerState has the lines that were signed.
type containerState struct {
	sig.StateHeader
	List []byte
}

// Fields implements sig.State.
func (st *containerState) Fields(f *sig.Fields) {
	f.Header(&st.StateHeader)
	f.Bytes(&st.List)
}

// Describe implements sig.Describer.
func (Container) Describe() sig.Description {
	return sig.Description{
		Types: []sig.Type{{Name: "Container", Number: "78"}},
		Kind:  "container", Noun: "container", Expected: "a container", Suffix: ".container",
		Recognises: func(head []byte, _ int64) bool { return bytes.HasPrefix(head, []byte(containerMark)) },
	}
}

// Read implements sig.Format.
func (Container) Read(p sig.Params) *sig.Request {
	q := p.Request()
	q.Several = !q.Reader().Bool(ContainerAlone, false)
	return q
}

// Prepare implements sig.Format.
func (f Container) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	return sig.Within(ctx, job, func(ctx context.Context) (*sig.Prepared, error) {
		s, err := sig.SuiteOf(job.Certificate)
		if err != nil {
			return nil, err
		}
		r := f.Read(job.Params).ForJob(job)
		names := map[string]bool{}
		for one := range job.Documents() {
			if one.Name == "" || names[one.Name] {
				r.Fault("Files", fmt.Sprintf("%q is not a name of one document; different names expected", one.Name))
			}
			names[one.Name] = true
		}
		if err := r.Err(); err != nil {
			return nil, err
		}
		list, err := listOf(ctx, job, s.Hash)
		if err != nil {
			return nil, err
		}
		st := &containerState{containerForm.Header(job), list}
		return &sig.Prepared{Digest: s.Hash.Digest(list), State: sig.MarshalState(st, 100+len(list))}, nil
	})
}

// listOf returns the lines of the documents of a job.
func listOf(ctx context.Context, job *sig.Job, h *suite.Hash) ([]byte, error) {
	list := []byte(containerMark)
	for one := range job.Documents() {
		if one.Document == nil {
			return nil, &sig.ErrState{Text: "the document is needed"}
		}
		d, err := sig.DigestOf(ctx, one, h)
		if err != nil {
			return nil, err
		}
		list = fmt.Appendf(list, "%q %d %x\n", one.Name, one.Document.Size(), d.Sum)
	}
	return list, nil
}

// Finish implements sig.Format.
func (Container) Finish(ctx context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	return sig.Within(ctx, job, func(ctx context.Context) (sig.Result, error) {
		s, err := sig.SuiteOf(job.Certificate)
		if err != nil {
			return nil, err
		}
		var st containerState
		if err := sig.OpenState(containerForm, job, prepared, &st); err != nil {
			return nil, err
		}
		if err := errors.Join(st.CheckCertificate(job.Certificate), st.CheckSize(job.Document)); err != nil {
			return nil, err
		}
		list, err := listOf(ctx, job, s.Hash)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(list, st.List) {
			return nil, &sig.ErrState{Text: "made for other documents"}
		}
		parts := []sig.Part{sig.Bytes(fmt.Appendf(list, "\n%x\n", signature))}
		for one := range job.Documents() {
			parts = append(parts, sig.Section(one.Document, 0, one.Document.Size()))
		}
		return sig.Parts(parts...), nil
	})
}

// Verify implements sig.Verifier. The check must have a Certificate. Signature.Covers is the lines.
func (Container) Verify(_ context.Context, c *sig.Check) (*sig.Report, error) {
	file, err := io.ReadAll(io.NewSectionReader(c.Document, 0, c.Document.Size()))
	if err != nil {
		return nil, err
	}
	s, err := sig.SuiteOf(c.Certificate)
	if err != nil {
		return nil, err
	}
	list, rest, found := bytes.Cut(file, []byte("\n\n"))
	line, content, more := bytes.Cut(rest, []byte("\n"))
	value, err := hex.DecodeString(string(line))
	if !found || !more || err != nil || !bytes.HasPrefix(file, []byte(containerMark)) {
		return nil, &sig.ErrDocument{What: "Document", Text: "a container expected"}
	}
	list = append(bytes.Clone(list), '\n')
	out := sig.Signature{Signer: c.Certificate, BestTime: c.At, Covers: string(list)}
	if err := s.Verify(c.Certificate.PublicKey, s.Hash.Digest(list), value); err != nil {
		out.Findings = append(out.Findings, sig.Finding{Code: "mismatch", Text: err.Error(), Indication: sig.SigCryptoFailure})
	}
	lines := bufio.NewScanner(bytes.NewReader(list[len(containerMark):]))
	for lines.Scan() {
		var name string
		var size int
		var sum []byte
		if _, err := fmt.Sscanf(lines.Text(), "%q %d %x", &name, &size, &sum); err != nil || size < 0 || size > len(content) {
			return nil, &sig.ErrDocument{What: "Document", Text: "a container expected", Err: err}
		}
		if !bytes.Equal(s.Hash.Digest(content[:size]).Sum, sum) {
			out.Findings = append(out.Findings, sig.Finding{Code: "mismatch", Text: name, Indication: sig.HashFailure})
		}
		content = content[size:]
	}
	return &sig.Report{Signatures: []sig.Signature{out}}, nil
}
