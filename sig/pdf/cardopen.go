// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"tamga/pki/suite"
	"tamga/sig"
)

// maxAttachments is how many files a card may have when it is opened.
const maxAttachments = 1000

// OpenCard implements [sig.Cards]. It reads the attachments as other programs do, and compares them with what the card
// says of itself.
func (f *Format) OpenCard(ctx context.Context, card sig.Document) (*sig.OpenedCard, error) {
	return sig.Within(ctx, card, func(ctx context.Context) (*sig.OpenedCard, error) {
		file, err := open(ctx, card, card.Size(), nil)
		if err != nil {
			return nil, openError(ctx, err, false)
		}
		defer file.close()
		if file.crypt != nil {
			return nil, forbidden("is encrypted; a card that can be opened without a password expected")
		}
		o := &cardOpener{file: file, ctx: ctx, card: card}
		opened, err := o.open()
		if failed := file.failed(); failed != nil {
			return nil, failed
		}
		return opened, err
	})
}

type cardOpener struct {
	file *file
	ctx  context.Context
	card sig.Document
	said dict // the description
	out  *sig.OpenedCard
}

// attachment is a file that the card has.
type attachment struct {
	*sig.CardFile
	content *stream
}

func (o *cardOpener) open() (*sig.OpenedCard, error) {
	f := o.file
	_, root := f.catalog()
	o.said = f.resolveDict(root.get(keyCard))
	if o.said == nil {
		return nil, &sig.ErrDocument{What: "Document", Text: "is no card; a PDF made as a card expected", OtherKind: true}
	}
	if version := f.intOf(o.said.get("Version")); version != 1 {
		return nil, forbidden(fmt.Sprintf("is a card of the version %d; version 1 expected", version))
	}
	o.out = &sig.OpenedCard{Report: sig.CardReport{Number: o.text("Number"), Address: o.text("Address")}}
	o.out.Made, _ = readDate(f.textOf(o.said.get("Made")))
	list, err := o.attachments(root)
	if err != nil {
		return nil, err
	}
	if err := o.sort(list); err != nil {
		return nil, err
	}
	return o.out, o.checkSeal(root.get(keyCard))
}

func (o *cardOpener) text(key name) string {
	return readTextString(o.file.textOf(o.said.get(key)))
}

// attachments lists the files of the card. A name that leads out of a folder, and one that two files have, are errors:
// programs that write the files would write elsewhere, or one over the other.
func (o *cardOpener) attachments(root dict) (list []attachment, err error) {
	f := o.file
	taken := map[string]bool{}
	seen := map[int]bool{}
	var walk func(node object, depth int) error
	walk = func(node object, depth int) error {
		if id, ok := node.(ref); ok {
			if seen[id.num] {
				return forbidden("has a tree of attachments that leads to itself")
			}
			seen[id.num] = true
		}
		if depth > maxTreeDepth || !f.charge(priceObject) {
			return forbidden("has a tree of attachments deeper than the limit")
		}
		d := f.resolveDict(node)
		for _, kid := range f.resolveArray(d.get("Kids")) {
			if err := walk(kid, depth+1); err != nil {
				return err
			}
		}
		leaves := f.resolveArray(d.get("Names"))
		for i := 0; i+1 < len(leaves); i += 2 {
			if len(list) == maxAttachments {
				return forbidden(fmt.Sprintf("has more than %d attachments", maxAttachments))
			}
			one, err := o.attachment(f.resolveDict(leaves[i+1]))
			if err != nil {
				return err
			}
			if taken[sig.NameKey(one.Name)] {
				return forbidden(fmt.Sprintf("has two attachments with the name %s; names that differ expected", quoted(one.Name)))
			}
			taken[sig.NameKey(one.Name)] = true
			list = append(list, one)
		}
		return nil
	}
	tree := f.resolveDict(root.get("Names")).get("EmbeddedFiles")
	if tree == nil {
		return nil, nil
	}
	return list, walk(tree, 0)
}

// attachment reads the name and the content of a file.
func (o *cardOpener) attachment(spec dict) (attachment, error) {
	f := o.file
	label := readTextString(f.textOf(spec.get("UF")))
	if label == "" {
		label = readTextString(f.textOf(spec.get("F")))
	}
	if why := wrongCardName(label); why != "" {
		return attachment{}, forbidden(fmt.Sprintf("has an attachment with the name %s, which %s; the plain name of a file expected", quoted(label), why))
	}
	files := f.resolveDict(spec.get("EF"))
	content, ok := f.resolve(files.get("UF")).(*stream)
	if !ok {
		content, ok = f.resolve(files.get("F")).(*stream)
	}
	if !ok {
		return attachment{}, forbidden(fmt.Sprintf("has the attachment %s without content", quoted(label)))
	}
	a := attachment{&sig.CardFile{Name: label}, content}
	write, err := o.content(a)
	if err != nil {
		return attachment{}, err
	}
	a.WriteTo = write
	h := suite.Streebog256.New()
	counted := &counter{w: h, file: f}
	if err := write(o.ctx, counted); err != nil {
		return attachment{}, err
	}
	a.Size, a.Digest = counted.n, suite.Digest{Hash: suite.Streebog256, Sum: h.Sum(nil)}
	return a, nil
}

// wrongCardName says what is wrong with the name of an attachment, "" for a name that can be that of a file.
func wrongCardName(label string) string {
	switch {
	case label == "":
		return "is empty"
	case !utf8.ValidString(label) || strings.ContainsRune(label, '\ufffd'):
		return "has characters that are not Unicode"
	case utf8.RuneCountInString(label) > maxCardName:
		return fmt.Sprintf("has more than %d characters", maxCardName)
	case strings.ContainsAny(label, `/\:`) || label == "." || label == ".." || driveOf(label):
		return "leads to another folder"
	case device(label):
		return "names a device on Windows"
	case strings.ContainsFunc(label, hiddenInName):
		return "has characters that do not show"
	case strings.TrimRight(label, " .") != label || strings.TrimSpace(label) != label:
		return "begins or ends with a space or a point"
	}
	return ""
}

// content returns what writes an attachment. Programs that change a PDF may have compressed it.
func (o *cardOpener) content(a attachment) (func(ctx context.Context, w io.Writer) error, error) {
	f, s := o.file, a.content
	n, ok := f.lengthOf(s)
	if !ok || !f.endsStream(s.offset, n) {
		return nil, forbidden(fmt.Sprintf("has the attachment %s with a wrong length", quoted(a.Name)))
	}
	filters := filterList(f.resolve(s.dict.get("Filter")))
	packed := len(filters) == 1 && f.resolve(filters[0]) == name("FlateDecode") && f.resolve(s.dict.get("DecodeParms")) == nil
	if len(filters) > 0 && !packed {
		return nil, forbidden(fmt.Sprintf("has the attachment %s in an encoding that no card has", quoted(a.Name)))
	}
	card, offset, most := o.card, s.offset, maxUnpacked(o.card.Size())
	return func(ctx context.Context, w io.Writer) error {
		var r io.Reader = &sectionReader{ctx, io.NewSectionReader(card, offset, n)}
		if packed {
			z, err := zlib.NewReader(r)
			if err != nil {
				return forbidden(fmt.Sprintf("has the attachment %s, whose compression is broken", quoted(a.Name)))
			}
			r = io.LimitReader(z, most+1)
		}
		written, err := io.Copy(w, r)
		switch {
		case packed && written > most:
			return forbidden(fmt.Sprintf("has the attachment %s, which is larger than %d bytes when it is unpacked", quoted(a.Name), most))
		case packed && (errors.Is(err, zlib.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(flate.CorruptInputError))):
			return forbidden(fmt.Sprintf("has the attachment %s, whose compression is broken", quoted(a.Name)))
		case err == nil && !packed && written < n:
			return io.ErrUnexpectedEOF
		}
		return err
	}, nil
}

// maxUnpacked bounds a compressed attachment of a card of so many bytes: it is some times larger at most.
func maxUnpacked(size int64) int64 { return 64<<20 + 20*min(size, 1<<40) }

// sectionReader is a reader whose Read fails after the context ends.
type sectionReader struct {
	ctx context.Context
	*io.SectionReader
}

func (r *sectionReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.SectionReader.Read(p)
}

// WriteTo keeps io.Copy from passing the context by.
func (r *sectionReader) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}

// counter counts and charges what is written.
type counter struct {
	w    io.Writer
	file *file
	n    int64
}

func (c *counter) Write(p []byte) (int, error) {
	if !c.file.charge(int64(len(p)) / 32) {
		return 0, c.file.failed()
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// sort compares the attachments with the description.
func (o *cardOpener) sort(list []attachment) error {
	f := o.file
	by := map[string]*sig.CardFile{}
	for _, a := range list {
		by[a.Name] = a.CardFile
	}
	change := func(kind sig.CardChangeKind, file string) {
		o.out.Changes = append(o.out.Changes, sig.CardChange{Kind: kind, Name: file})
	}
	said := f.resolveArray(o.said.get("Files"))
	if len(said) > maxAttachments {
		return forbidden(fmt.Sprintf("names more than %d files", maxAttachments))
	}
	known := map[string]bool{}
	for i, e := range said {
		d := f.resolveDict(e)
		label := readTextString(f.textOf(d.get("Name")))
		file := by[label]
		if file == nil || known[label] {
			change(sig.CardFileMissing, label)
			continue
		}
		known[label] = true
		sum, err := hex.DecodeString(string(f.textOf(d.get("Digest"))))
		if err != nil || !bytes.Equal(sum, file.Digest.Sum) {
			change(sig.CardFileChanged, label)
		}
		if i == 0 {
			o.out.Original = file
		} else {
			o.out.Signatures = append(o.out.Signatures, file)
		}
	}
	for _, a := range list {
		if !known[a.Name] {
			o.out.Others = append(o.out.Others, a.CardFile)
			change(sig.CardFileAdded, a.Name)
		}
	}
	return nil
}

// checkSeal compares the card with its digest.
func (o *cardOpener) checkSeal(description object) error {
	f := o.file
	change := func(kind sig.CardChangeKind) error {
		o.out.Changes = append(o.out.Changes, sig.CardChange{Kind: kind})
		return nil
	}
	id, _ := description.(ref)
	length := f.intOf(o.said.get("Length"))
	seal := f.textOf(o.said.get("Seal"))
	at := f.find(id.num)
	if id.num == 0 || at.kind != inFile || f.rebuilt || length <= 0 || length > f.size || len(seal) != sealDigits {
		return change(sig.CardRewritten)
	}
	// The digits of the seal are where the description has them, in the bytes of the card as it was made.
	from := at.at + f.bias
	head := make([]byte, min(512, f.size-from))
	if !f.readFull(head, from) {
		return f.failed()
	}
	i := bytes.Index(head, append([]byte("/Seal ("), seal...))
	if i < 0 {
		return change(sig.CardRewritten)
	}
	from += int64(i + len("/Seal ("))
	if from+sealDigits > length {
		return change(sig.CardRewritten)
	}
	h := suite.Streebog256.New()
	if err := sig.HashSection(o.ctx, h, o.card, 0, from); err != nil {
		return err
	}
	io.WriteString(h, strings.Repeat("0", sealDigits))
	if err := sig.HashSection(o.ctx, h, o.card, from+sealDigits, length-from-sealDigits); err != nil {
		return err
	}
	switch {
	case hex.EncodeToString(h.Sum(nil)) != string(seal):
		return change(sig.CardRewritten)
	case length < f.size:
		return change(sig.CardExtended)
	}
	return nil
}
