// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"

	"tamga/internal/cli"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
	"tamga/internal/files"
	"tamga/pki/cms"
	"tamga/pki/pfx"
	"tamga/pki/x509gost"
)

// ownKey is a key from a file with the certificates that it belongs to.
type ownKey struct {
	file         string
	key          crypto.Signer
	recipient    cms.RecipientKey
	certificates []*x509gost.Certificate
}

// readKey reads --key. The caller wipes it.
func (d *Decrypt) readKey(c *cli.Console) (*ownKey, error) {
	data, err := files.Bounded(d.Key, pfx.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	var password string
	if d.KeyPasswordFile != "" {
		password, err = files.ReadSecret(d.KeyPasswordFile, "--key-password-file")
	} else {
		password, err = c.AskSecret(c.Text("Password of %s: ", cli.Printable(d.Key)), "--key-password-file")
	}
	if err != nil {
		return nil, err
	}
	bundle, err := pfx.Parse(data, password)
	if err != nil {
		return nil, fmt.Errorf("--key: %s: %w", d.Key, err)
	}
	own := &ownKey{file: d.Key, key: bundle.Key}
	public, ok := bundle.Key.Public().(interface{ Equal(crypto.PublicKey) bool })
	// A certificate that was renewed with its key opens old messages, too.
	for _, cert := range append([]*x509gost.Certificate{bundle.Certificate}, bundle.Others...) {
		if ok && cert != nil && cert.PublicKey != nil && public.Equal(cert.PublicKey) {
			own.certificates = append(own.certificates, cert)
		}
	}
	if own.recipient, err = cms.NewRecipientKey(bundle.Key); err == nil && len(own.certificates) == 0 {
		err = errors.New("the file has no certificate of its key; export the key together with its certificate")
	}
	if err != nil {
		own.wipe()
		return nil, fmt.Errorf("--key: %s: %w", d.Key, err)
	}
	return own, nil
}

func (o *ownKey) wipe() { vault.Wipe(o.key) }

// here decrypts in this program.
func (d *Decrypt) here(c *cli.Console, jobs []job, originator *x509gost.Certificate) error {
	own, err := d.readKey(c)
	if err != nil {
		return err
	}
	defer own.wipe()
	done := make([]outputFile, 0, len(jobs))
	for _, job := range jobs {
		one, err := d.openWith(c, job, own, originator)
		if c.Context.Err() != nil {
			return c.Context.Err()
		}
		if err != nil && len(jobs) == 1 {
			return err
		}
		if err != nil {
			one = outputFile{Input: job.name, Type: one.Type, Error: string(fault.InvalidContent), Reason: err.Error()}
			if r, is := errors.AsType[*cli.Refused](err); is {
				one.Error = string(r.Fault.Code)
			}
		}
		if job.output == "-" {
			return nil
		}
		done = append(done, one)
	}
	return d.report(c, done)
}

// openWith decrypts a message. The first pass checks it and keeps nothing, and the second one writes: so that no byte
// of a message that is wrong reaches a file or another program.
func (d *Decrypt) openWith(c *cli.Console, job job, own *ownKey, originator *x509gost.Certificate) (one outputFile, err error) {
	bar := cli.NewProgress(c)
	defer bar.Clear()
	m, err := d.open(c, job, bar)
	if err != nil {
		return one, err
	}
	defer m.in.Close()
	one = outputFile{Input: job.name, Type: string(m.kind)}
	e, err := m.kind.Read(c.Context, m.in.Document)
	if err != nil {
		return one, plainly(err)
	}
	defer e.Close()
	opening := cms.Opening{Key: own.recipient, Originator: originator}
	if opening.Certificate, err = own.of(e.Opens); err != nil {
		return one, err
	}
	decrypt := func(sink cms.Sink) (string, error) {
		integrity, err := e.Decrypt(c.Context, opening, sink)
		if errors.Is(err, cms.ErrOriginator) {
			err = fmt.Errorf("%w; --originator names a file with this certificate", cms.ErrOriginator)
		}
		return integrity.String(), plainly(err)
	}
	size := m.in.Document.Size()
	bar.Stage(c.Text("checking"), size)
	checked := &checkSink{}
	if one.Integrity, err = decrypt(checked); err != nil {
		return one, err
	}
	one.Bytes = &checked.size
	bar.Stage(c.Text("decrypting"), size)
	if job.output == "-" {
		if _, err := decrypt(&outputSink{Writer: c.Stdout}); err != nil {
			return one, err
		}
		bar.Clear()
		warn(c, one.Integrity)
		return one, nil
	}
	out, err := cli.CreatePrivateOutfile(job.output, d.Force)
	if err != nil {
		return one, err
	}
	defer out.Discard()
	if _, err := decrypt(&outputSink{out, out}); err != nil {
		return one, err
	}
	one.File = job.output
	return one, nil
}

// of returns the certificate that opens a message.
func (o *ownKey) of(opens func(*x509gost.Certificate) error) (*x509gost.Certificate, error) {
	var why error
	i := slices.IndexFunc(o.certificates, func(cert *x509gost.Certificate) bool {
		err := opens(cert)
		if err != nil && !errors.Is(err, cms.ErrNotRecipient) {
			why = err
		}
		return err == nil
	})
	switch {
	case i >= 0:
		return o.certificates[i], nil
	case why != nil:
		return nil, plainly(why)
	}
	return nil, fmt.Errorf("the message was not encrypted for the certificate in %s", o.file)
}

// plainly returns a fault without its code, for people.
func plainly(err error) error {
	if f, is := fault.As(err); is {
		return &cli.Refused{Fault: f}
	}
	return err
}

// checkSink counts a plaintext and keeps nothing of it.
type checkSink struct{ size int64 }

// Write implements cms.Sink.
func (s *checkSink) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	return len(p), nil
}

// Commit implements cms.Sink.
func (*checkSink) Commit() error { return nil }

// Discard implements cms.Sink.
func (*checkSink) Discard() {}

// outputSink writes a plaintext that was checked.
type outputSink struct {
	io.Writer
	out *cli.Outfile // nil: standard output
}

// Commit implements cms.Sink.
func (s *outputSink) Commit() error {
	if s.out == nil {
		return nil
	}
	return s.out.Commit()
}

// Discard implements cms.Sink.
func (s *outputSink) Discard() {
	if s.out != nil {
		s.out.Discard()
	}
}
