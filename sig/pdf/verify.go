// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tamga/pki/cms"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// Codes of findings, in addition to those of the messages inside, of the chain, and of
// later changes.
const (
	codeNoSignature   = "no-signature"        // the document has no signature
	codeMany          = "too-many-signatures" // more than are checked
	codeBroken        = "structure-broken"    // the objects were searched for
	codeTwoFields     = "signature-in-fields" // several fields have the same signature
	codeMalformed     = "signature-malformed" // the dictionary is invalid or ambiguous
	codeByteRange     = "byte-range"          // the signature leaves out more than its own value
	codePadding       = "contents-padding"    // bytes other than zero after the message
	codeRevision      = "covers-no-revision"  // the covered bytes are not a revision of the document
	codeTrailing      = "trailing-bytes"      // bytes after the covered ones that are not a revision of the document
	codeUnknown       = "format-unknown"      // an unsupported SubFilter
	codeMessage       = "message-malformed"   // Contents is not a signed message or token
	codeClaimedTime   = "signing-time-twice"  // both in the message and in the document
	codeTimeStamp     = "time-stamp-invalid"  // it breaks a rule for time stamps
	codeNoCertificate = "certificate-missing" // of the time-stamp service
	codeDigest        = "message-digest-mismatch"
	codeStampOrder    = "time-stamps-out-of-order"  // one covers another that is later
	codeLapsed        = "archive-time-stamp-lapsed" // a renewal is missing
	codeUntrusted     = "time-stamp-untrusted"      // it is not by a trusted service
)

// Verify implements sig.Verifier. An encrypted document must open without a password or
// with that of the check, else the error is an ErrParams.
func (f *Format) Verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	return sig.Within(ctx, c.Document, func(ctx context.Context) (*sig.Report, error) { return f.verify(ctx, c) })
}

func (f *Format) verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	v, err := f.verified(ctx, c)
	if err != nil {
		return nil, err
	}
	return v.report, nil
}

// verified is verify and returns all that it has read.
func (f *Format) verified(ctx context.Context, c *sig.Check) (*verifier, error) {
	d, err := open(ctx, c.Document, c.Document.Size(), c.Password)
	if err != nil && !errors.Is(err, errNotPDF) {
		if before := openUnlocked(ctx, c.Document, c.Password); before != nil {
			d, err = before, nil
		}
	}
	if err != nil {
		return nil, openError(ctx, err, len(c.Password) > 0)
	}
	v := &verifier{ctx: ctx, format: f, check: c, file: d, report: &sig.Report{}}
	if d.rebuilt {
		v.report.Findings = append(v.report.Findings, sig.Finding{
			Code: codeBroken, Text: "the cross-references of the document are broken; its objects were searched for, and other programs may find others",
		})
	}
	v.collect()
	v.beside = v.store(d)
	v.prefixes, v.graph, v.later = newPrefixes(c.Document, v.signatures, d.spending), newGraph(), newLater(d)
	v.stamps()
	v.around = sig.Container{Found: v.beside}
	v.proven, v.signed = c.At, c.At
	v.report.Signatures = make([]sig.Signature, len(v.signatures))
	for i := len(v.signatures) - 1; i >= 0; i-- {
		if err := d.failed(); err != nil {
			return nil, err
		}
		out := v.judge(v.signatures[i])
		out.Index = i
		v.report.Signatures[i] = out
	}
	if err := d.failed(); err != nil {
		return nil, err
	}
	return v, nil
}

type verifier struct {
	ctx        context.Context
	format     *Format
	check      *sig.Check
	file       *file
	report     *sig.Report
	signatures []*signature // ordered by the end of their covered bytes
	beside     sig.Found    // the document security store
	prefixes   *prefixes
	graph      *graph
	later      *later

	// While signatures are judged, from the last to the first, around has what the document adds to the
	// next one, and proven is the time at which it is proved to have existed, or the time of the check.
	around sig.Container
	proven time.Time
	// signed is the time at which time stamps in the messages of later signatures prove that it existed: such a signature
	// covers those before it. It is not later than the time of the check.
	signed time.Time
	proofs []sig.TimeStamp // of the document and of later signatures
	left   []sig.Finding   // about time stamps that were left out
}

// signature is one signature of the document as read.
type signature struct {
	field    *field
	id       ref
	dict     dict
	message  []byte // value of Contents without padding
	contents span   // place of the value, with its brackets
	from, to int64  // the hole of ByteRange
	end      int64  // end of the covered bytes
	revision int64  // end again, if the covered bytes are an earlier version of the document
	findings []sig.Finding
	broken   bool
	stamp    *docStamp // nil for other signatures
}

func (s *signature) fatal(code, format string, args ...any) {
	s.findings = append(s.findings, sig.Finding{Code: code, Text: fmt.Sprintf(format, args...), Indication: sig.IndicationOf(code)})
	s.broken = true
}

// collect finds the signatures.
func (v *verifier) collect() {
	f := v.file
	values := map[int]*signature{}
	for _, d := range f.form().signatures {
		if !d.signed() {
			continue
		}
		id, _ := d.value.(ref)
		if s := values[id.num]; s != nil && id.num != 0 {
			s.findings = append(s.findings, sig.Finding{
				Code: codeTwoFields, Text: fmt.Sprintf("the fields %s and %s have the same signature", quoted(s.field.name), quoted(d.name)),
			})
			continue
		}
		if len(v.signatures) == maxSignatures {
			v.report.Findings = append(v.report.Findings, sig.Finding{
				Code: codeMany, Text: fmt.Sprintf("the document has more than %d signatures", maxSignatures), Indication: sig.IndicationOf(codeMany),
			})
			break
		}
		s := f.signature(d)
		v.signatures, values[id.num] = append(v.signatures, s), s
	}
	slices.SortStableFunc(v.signatures, func(a, b *signature) int { return int(min(1, max(-1, a.end-b.end))) })
	if len(v.signatures) == 0 {
		v.report.Findings = append(v.report.Findings, sig.Finding{Code: codeNoSignature, Text: "the document has no signature", Indication: sig.IndicationOf(codeNoSignature)})
	}
}

// signature reads the dictionary of a signature from its place in the file.
func (f *file) signature(d *field) *signature {
	s := &signature{field: d}
	id, ok := d.value.(ref)
	place := f.find(id.num)
	if !ok || place.kind != inFile {
		s.dict = f.resolveDict(d.value)
		s.fatal(codeMalformed, "the signature dictionary is not an indirect object in the file")
		return s
	}
	s.id = f.current(id)
	l := f.lexer(place.at)
	spans := map[name]span{}
	if _, err := l.header(); err == nil {
		l.left, l.spans = maxTokens, spans
		begin := l.offset()
		o, _ := l.object()
		f.parsed(l, begin)
		if !f.keep(2 * f.last) { // two fields may share a dictionary
			s.fatal(codeMalformed, "%v", f.failed())
			return s
		}
		s.dict, _ = o.(dict)
	}
	if s.dict == nil {
		s.fatal(codeMalformed, "the value of the field is not a signature dictionary")
		return s
	}
	value, isText := s.dict.get("Contents").(text)
	s.contents = spans["Contents"]
	if !isText || s.contents == (span{}) || spans["ByteRange"] == (span{}) {
		s.fatal(codeMalformed, "the signature dictionary must have one Contents and one ByteRange")
		return s
	}
	s.message = value[:min(len(value), elementLength(value))]
	if padding := value[len(s.message):]; !isZero(padding) {
		s.findings = append(s.findings, sig.Finding{
			Code: codePadding, Headline: "unsigned bytes after the signature",
			Text: fmt.Sprintf("the %d bytes after the message in Contents are not zero, and they are not signed", len(padding)),
		})
	}
	s.readRange(f)
	return s
}

// isZero reports whether all bytes are zero.
func isZero(b []byte) bool {
	// If each byte equals the one before it, all are like the first.
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}

// readRange checks ByteRange. It must cover the file from its beginning except the value
// of Contents.
func (s *signature) readRange(f *file) {
	list, _ := s.dict.get("ByteRange").(array)
	var n [4]int64
	ok := len(list) == 4
	for i := 0; ok && i < 4; i++ {
		n[i], ok = integer(list[i])
	}
	if !ok || n[0] != 0 || n[1] <= 0 || n[2] < n[1] || n[3] < 0 || n[2] > f.size-n[3] {
		s.fatal(codeByteRange, "ByteRange must be [0 a b c] within the file")
		return
	}
	s.from, s.to, s.end = n[1], n[2], n[2]+n[3]
	at, behind := s.contents.from, s.contents.to
	exact := s.from == at && s.to == behind
	inner := s.from == at+1 && s.to == behind-1 // the brackets are covered too, so nothing is left out
	if !exact && !inner {
		s.fatal(codeByteRange, "ByteRange leaves out the bytes from %d to %d, but the value of Contents is from %d to %d: the bytes between them can be changed freely", s.from, s.to, at, behind)
		return
	}
	if !f.hexadecimal(s.contents) {
		s.fatal(codeMalformed, "Contents is not a hexadecimal string")
	}
}

// hexadecimal reports whether a string consists of hexadecimal digits and white space in
// angle brackets. Programs read other characters in it in different ways.
func (f *file) hexadecimal(at span) bool {
	var first, last [1]byte
	if !f.readFull(first[:], at.from) || !f.readFull(last[:], at.to-1) || first[0] != '<' || last[0] != '>' {
		return false
	}
	buf := blocks.Get().(*[blockSize]byte)
	defer blocks.Put(buf)
	for from := at.from + 1; from < at.to-1; {
		b := buf[:min(int64(len(buf)), at.to-1-from)]
		if !f.readFull(b, from) {
			return false
		}
		from += int64(len(b))
		for len(b) > 0 {
			if n := len(leadingZeros(b)); n > 0 { // most of the space for a signature is left over
				b = b[n:]
				continue
			}
			part := b[:min(len(b), zerosAtOnce)]
			for _, c := range part {
				if !inHexadecimal[c] {
					return false
				}
			}
			b = b[len(part):]
		}
	}
	return true
}

// zerosAtOnce is the number of characters that leadingZeros and trailingZeros compare at a time.
const zerosAtOnce = 64

// zeroDigits are the digits that fill the space for a signature.
var zeroDigits = [zerosAtOnce]byte(bytes.Repeat([]byte{'0'}, zerosAtOnce))

// leadingZeros returns the beginning of b that is digits 0, in multiples of zerosAtOnce.
func leadingZeros(b []byte) []byte {
	n := 0
	for len(b)-n >= zerosAtOnce && [zerosAtOnce]byte(b[n:]) == zeroDigits {
		n += zerosAtOnce
	}
	return b[:n]
}

// trailingZeros returns the end of b that is digits 0, in multiples of zerosAtOnce.
func trailingZeros(b []byte) []byte {
	n := len(b)
	for n >= zerosAtOnce && [zerosAtOnce]byte(b[n-zerosAtOnce:]) == zeroDigits {
		n -= zerosAtOnce
	}
	return b[n:]
}

// inHexadecimal marks the characters of a hexadecimal string.
var inHexadecimal = func() (t [256]bool) {
	for c := range t {
		t[c] = hexDigit(c) >= 0 || isSpace(c)
	}
	return t
}()

// elementLength returns the length of the BER element at the beginning of a value.
func elementLength(b []byte) int {
	n, ok := berEnd(b, 0, 0)
	if !ok {
		return len(b)
	}
	return n
}

// berEnd finds the end of the element at an offset.
func berEnd(b []byte, at, depth int) (int, bool) {
	if at+2 > len(b) || depth > 32 || b[at]&0x1f == 0x1f {
		return 0, false
	}
	l := int(b[at+1])
	body := at + 2
	switch {
	case l < 0x80:
	case l == 0x80:
		for {
			if body+2 > len(b) {
				return 0, false
			}
			if b[body] == 0 && b[body+1] == 0 {
				return body + 2, true
			}
			var ok bool
			if body, ok = berEnd(b, body, depth+1); !ok {
				return 0, false
			}
		}
	default:
		n := l & 0x7f
		if n > 4 || body+n > len(b) {
			return 0, false
		}
		l = 0
		for _, c := range b[body : body+n] {
			l = l<<8 | int(c)
		}
		body += n
	}
	return body + l, body+l <= len(b)
}

// covered is the bytes that a signature covers, as one document.
type covered struct {
	document      sig.Document
	from, to, end int64
	prefixes      *prefixes
}

// Size implements sig.Document.
func (c covered) Size() int64 { return c.end - (c.to - c.from) }

// ReadAt implements io.ReaderAt.
func (c covered) ReadAt(p []byte, off int64) (int, error) {
	if off < c.from {
		n := min(int64(len(p)), c.from-off)
		got, err := c.document.ReadAt(p[:n], off)
		if int64(got) < n || got == len(p) {
			return got, err
		}
		more, err := c.ReadAt(p[got:], c.from)
		return got + more, err
	}
	size := c.Size()
	if off >= size {
		return 0, io.EOF
	}
	n := min(int64(len(p)), size-off)
	got, err := c.document.ReadAt(p[:n], off+c.to-c.from)
	if int64(got) == n {
		err = nil
		if got < len(p) {
			err = io.EOF
		}
	}
	return got, err
}

// store returns the document security store of a revision.
func (v *verifier) store(f *file) (found sig.Found) {
	_, root := f.catalog()
	dss := f.resolveDict(root.get("DSS"))
	left := maxStore
	each := func(key name, use func([]byte)) {
		for _, o := range f.resolveArray(dss.get(key)) {
			s, ok := f.resolve(o).(*stream)
			if left--; !ok || left < 0 {
				continue
			}
			if data, err := f.data(s); err == nil {
				f.charge(budget.Certificate + int64(len(data)))
				use(data)
			}
		}
	}
	// An unreadable value is reported as missing if it is needed.
	each("Certs", func(der []byte) {
		if c, err := x509gost.ParseCertificate(der); err == nil {
			found.Certificates = append(found.Certificates, c)
		}
	})
	each("CRLs", func(der []byte) {
		if l, err := x509gost.ParseRevocationList(der); err == nil {
			found.CRLs = append(found.CRLs, l)
		}
	})
	each("OCSPs", func(der []byte) {
		if r, err := ocsp.Parse(der); err == nil && r.Basic != nil {
			found.OCSP = append(found.OCSP, r.Basic)
		}
	})
	return found
}

// maxStore is how many elements of the document security store are read.
const maxStore = 1024

// subFilter returns the format of a signature.
func (v *verifier) subFilter(s *signature) name {
	n, _ := v.file.resolve(s.dict.get("SubFilter")).(name)
	return n
}

// judge checks one signature. Those that cover it were judged before.
func (v *verifier) judge(s *signature) sig.Signature {
	f := v.file
	subFilter := v.subFilter(s)
	out := sig.Signature{Level: "CMS", BestTime: v.proven}
	if subFilter == subFilterStamp {
		out.Level = sig.LevelDocumentStamp
	}
	if !s.broken {
		check := v.checkOf(s)
		switch subFilter {
		case "adbe.pkcs7.detached", "ETSI.CAdES.detached":
			out = v.judgeMessage(s, check)
			v.levelled(&out)
		case "adbe.pkcs7.sha1":
			out = v.judgeSHA1(s, check)
		case subFilterStamp:
			out = v.judgeStamp(s, check)
		case "adbe.x509.rsa_sha1":
			s.fatal(codeUnknown, "the format adbe.x509.rsa_sha1 is not supported")
			s.rests(v.check, suite.SHA1, v.proven)
		default:
			s.fatal(codeUnknown, "the format %s is not supported", printable(f.resolve(s.dict.get("SubFilter"))))
		}
	}
	if claimed, ok := readDate(v.text(s, "M")); ok {
		if subFilter == "ETSI.CAdES.detached" && !out.SigningTime.IsZero() {
			s.findings = append(s.findings, sig.Finding{Code: codeClaimedTime, Text: "the message claims a signing time in addition to that of the document, which PAdES forbids"})
		}
		if out.SigningTime.IsZero() {
			out.SigningTime = claimed
		}
	}
	out.Covers = v.covers(s)
	out.Revision = s.revision
	for i := range s.findings {
		if f := &s.findings[i]; f.Code == codePadding && v.check.Strict {
			f.Indication = sig.IndicationOf(codePadding)
		}
	}
	out.Findings = append(out.Findings, s.findings...)
	if out.IsStamp() {
		v.stamped(s, &out)
		return out
	}
	if n := len(v.proofs); out.Proofs == nil { // all signatures share the list
		out.Proofs = v.proofs[:n:n]
	} else {
		out.Proofs = append(out.Proofs, v.proofs...)
	}
	// What it covers existed when its value was stamped. Its signer must be trusted: for an old value and any new digest a key
	// can be computed under which the value is a signature of the digest, but no authority certifies it.
	if out.Own() == sig.Passed {
		for _, ts := range out.TimeStamps {
			if !ts.Proves() {
				continue
			}
			v.proofs = append(v.proofs, ts)
			if ts.Time.Before(v.signed) {
				v.signed = ts.Time
			}
		}
	}
	out.Findings = append(out.Findings, v.left...)
	return out
}

// checkOf returns the check of what is in the signature.
func (v *verifier) checkOf(s *signature) *sig.Check {
	check := *v.check
	check.Document = bytes.NewReader(s.message)
	check.Original, check.Hash, check.At = covered{v.check.Document, s.from, s.to, s.end, v.prefixes}, nil, v.proven
	if v.signed.Before(v.proven) {
		check.At = v.signed
	}
	check.Intermediates = slices.Concat(v.beside.Certificates, check.Intermediates)
	check.CRLs = slices.Concat(v.beside.CRLs, check.CRLs)
	check.OCSP = slices.Concat(v.beside.OCSP, check.OCSP)
	check.Container = &v.around
	return &check
}

// levelled gives the level the name that it has in PDF.
func (v *verifier) levelled(out *sig.Signature) {
	if out.Level != "A" {
		return
	}
	// The first document time stamp after a signature must not be earlier than its own.
	for _, ts := range out.TimeStamps {
		if ts.Passed() && ts.Time.After(v.proven) {
			out.Level = "LT"
			out.Findings = append(out.Findings, sig.Finding{Code: codeStampOrder, Text: fmt.Sprintf(
				"a time stamp of the document, of %s, covers the time stamp (%s) of %s, which is later", at(v.proven), ts.Kind, at(ts.Time))})
			return
		}
	}
	out.Level = "LTA"
}

// text returns a string of the signature dictionary, which was read without decryption.
func (v *verifier) text(s *signature, key name) []byte {
	d, _ := v.file.resolve(s.field.value).(dict)
	return v.file.textOf(d.get(key))
}

// judgeMessage checks the message of a signature.
func (v *verifier) judgeMessage(s *signature, check *sig.Check) sig.Signature {
	r, err := v.format.CMS.Verify(v.ctx, check)
	switch {
	case errors.As(err, new(*sig.ErrDocument)), errors.As(err, new(*sig.ErrParams)):
		s.fatal(codeMessage, "Contents: %v", err)
	case err != nil: // an error of reading the document
		v.file.broken = errors.Join(v.file.broken, err)
	case len(r.Signatures) != 1:
		s.fatal(codeMessage, "the message in Contents has %d signatures; one expected", len(r.Signatures))
	default:
		out := r.Signatures[0]
		out.Findings = append(out.Findings, r.Findings...)
		return out
	}
	return sig.Signature{Level: "CMS", BestTime: check.At}
}

// judgeSHA1 checks adbe.pkcs7.sha1, where the message contains the SHA-1 digest of the
// covered bytes (ISO 32000-1, 12.8.3.3).
func (v *verifier) judgeSHA1(s *signature, check *sig.Check) sig.Signature {
	original := check.Original
	check.Original = nil
	out := v.judgeMessage(s, check)
	m, err := cms.ParseWithin(check.Document, check.Document.Size(), v.file.spending.Hold)
	if err != nil || m.Detached || m.ContentSize() != sha1.Size {
		s.fatal(codeMessage, "the message in Contents does not contain a SHA-1 digest")
		return out
	}
	var signed [sha1.Size]byte
	if _, err := m.ContentReader().Read(signed[:]); err != nil {
		s.fatal(codeMessage, "the message in Contents: %v", err)
		return out
	}
	digest, err := sig.DigestOf(v.ctx, sig.File{Document: original}, suite.SHA1)
	if err != nil {
		v.file.broken = errors.Join(v.file.broken, err)
	} else if !bytes.Equal(digest.Sum, signed[:]) {
		s.fatal(codeDigest, "the document is not what was signed: its SHA-1 digest differs")
	}
	s.rests(check, suite.SHA1, out.BestTime)
	return out
}

// rests adds a finding if the hash function of the signature was weak at the time at
// which the signature is proved to have existed.
func (s *signature) rests(c *sig.Check, h *suite.Hash, by time.Time) {
	if f, weak := c.WeakHash(h, by); weak {
		s.findings = append(s.findings, f)
	}
}

// covers describes what a signature covers and checks the later changes.
func (v *verifier) covers(s *signature) string {
	if s.end == 0 {
		return "nothing that could be determined"
	}
	size := v.file.size
	if v.blank(s.end) {
		return fmt.Sprintf("the whole document, %d bytes", s.end)
	}
	// Memory for an older revision is free again afterwards.
	held, kept := v.file.spending.Held(), v.graph.held+v.later.held
	defer func() {
		v.file.spending.Release(v.file.spending.Held() - held - (v.graph.held + v.later.held - kept))
	}()
	older, err := open(v.ctx, v.check.Document, s.end, v.check.Password)
	if err == nil && older.rebuilt {
		err = errors.New("its cross-references are broken")
	}
	if err == nil && older.find(s.id.num) != v.file.find(s.id.num) {
		err = errors.New("this signature is not in it")
	}
	if err != nil {
		s.fatal(codeRevision, "the covered bytes, %d of %d, are not a revision of the document: %v", s.end, size, err)
		return fmt.Sprintf("the first %d of %d bytes", s.end, size)
	}
	s.revision = s.end
	c := &comparison{old: older, signature: s}
	if last := v.file.sections[0].at; last >= 0 && last+v.file.bias < s.end {
		s.fatal(codeTrailing, "%d bytes follow that are not a revision of the document; other programs may find objects in them", size-s.end)
	} else if list, err := v.later.after(older, s.end); err != nil {
		if !errors.As(err, new(*strictError)) {
			v.file.broken = errors.Join(v.file.broken, err)
		}
		c.note(kindOther, "what follows are not whole objects with their cross-references, so that programs may show different documents: %v", err)
	} else {
		now := v.later.onto(older, list, s.end)
		c = compare(older, now, v.file, list, s, v.graph)
		if err := now.strictFault; err != nil && len(c.found[kindOther]) == 0 {
			c.note(kindOther, "later revisions cannot be read: %v", err)
		}
		now.close()
	}
	older.close()
	s.findings = append(s.findings, c.findings()...)
	covers := fmt.Sprintf("the first %d of %d bytes, a revision of the document; later revisions: %s", s.end, size, c.summary())
	if f, ok := c.part(v.check); ok {
		f.Text = "the signature covers " + covers
		s.findings = append(s.findings, f)
	}
	return covers
}

// blank reports whether only white space follows after an offset.
func (v *verifier) blank(from int64) bool {
	rest := v.file.size - from
	if rest > 64 {
		return false
	}
	b := make([]byte, rest)
	return v.file.readFull(b, from) && len(bytes.TrimLeft(b, " \t\r\n\x00")) == 0
}
