// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tamga/pki/cms"
	"tamga/pki/ocsp"
	"tamga/sig"
	"tamga/sig/cades"
)

// revision describes the revision that adds the document security store, once the section
// before it is closed. It returns nil for a format without one.
func (m *maker) revision(rootID ref, root dict) *revision {
	if m.params.level < sig.LevelLongTerm || m.stamping {
		return nil
	}
	return m.file.storeRevision(m.update, m.update.start, rootID, root)
}

// storeRevision describes a revision with the document security store that follows a section at an
// offset. A new store has a number after Size of the revision before: for other programs a number below
// it without an entry in the cross-references is a removed object that came back.
func (f *file) storeRevision(u *update, prev int64, rootID ref, root dict) *revision {
	r := &revision{
		Encrypted: u.crypt != nil, Stream: u.stream || u.start > maxTable, Bias: u.bias, Prev: prev,
		Catalog: [2]int{rootID.num, rootID.gen},
	}
	r.Root = inside(appendObject(nil, root.with("DSS", nil), u.conceal(rootID)))
	r.Trailer = inside(appendObject(nil, u.trailer, nil))
	var store ref
	old := f.resolveDict(root.get("DSS"))
	if id, ok := root.get("DSS").(ref); ok && old != nil {
		store = f.current(id)
	} else {
		store = u.reserve()
	}
	r.Store, r.Next = [2]int{store.num, store.gen}, u.next
	conceal := u.conceal(store)
	for key, to := range map[name]*string{"Certs": &r.Certs, "CRLs": &r.CRLs, "OCSPs": &r.OCSPs} {
		if list := f.resolveArray(old.get(key)); len(list) > 0 {
			*to = inside(appendObject(nil, list, conceal))
		}
		old = old.with(key, nil)
	}
	if vri := f.resolveDict(old.get("VRI")); len(vri) > 0 {
		r.VRI = inside(appendObject(nil, vri, conceal))
	}
	r.More = inside(appendObject(nil, old.with("VRI", nil).with("Type", nil), conceal))
	return r
}

// inside returns a dictionary or an array without its brackets.
func inside(b []byte) string {
	if bytes.HasPrefix(b, []byte("<<")) {
		return string(b[2 : len(b)-2])
	}
	return string(b[1 : len(b)-1])
}

// securityStore writes the revision with the document security store (ETSI EN 319 142-1,
// 5.4). The store has the long-term data of the message as streams. contents is the value
// of Contents. added is what the arrays of the store get. hold charges for memory.
func (st *state) securityStore(message, contents []byte, locked *crypt, hold func(bytes int64) error) (data []byte, added map[name][][]byte, err error) {
	m, err := cms.ParseWithin(bytes.NewReader(message), int64(len(message)), hold)
	if err != nil {
		return nil, nil, fmt.Errorf("pdf: the message: %w", err)
	}
	if len(m.Signers) != 1 {
		return nil, nil, fmt.Errorf("pdf: the message has %d signers", len(m.Signers))
	}
	certs, crls, answers := cades.Values(m.Signers[0])
	of := stored{contents: contents, certs: append(append([][]byte(nil), m.Certificates...), certs...), crls: crls, answers: answers}
	base := st.Size + int64(len(st.Head)) + holeOf(st.Room) + int64(len(st.Tail))
	return st.Revision.write(base, nil, locked, nil, []stored{of})
}

// stored is the evidence of one signature for the document security store.
type stored struct {
	contents             []byte // value of Contents, whose digest names the signature
	certs, crls, answers [][]byte
}

// write writes the revision, which begins at an offset with some bytes. known are the streams that the store
// has, by their content.
func (r *revision) write(base int64, begin []byte, locked *crypt, known map[string]ref, of []stored) (data []byte, added map[name][][]byte, err error) {
	u := &update{
		base: base, buf: begin,
		bias: r.Bias, stream: r.Stream, prev: r.Prev, next: r.Next, crypt: locked, holeAt: -1, placed: map[int]place{},
	}
	trailer, err := lexBytes([]byte("<<" + r.Trailer + ">>")).object()
	if err != nil {
		return nil, nil, fmt.Errorf("pdf: the trailer of the prepared state: %w", err)
	}
	u.trailer, _ = trailer.(dict)
	added = map[name][][]byte{}

	have := maps.Clone(known)
	if have == nil {
		have = map[string]ref{}
	}
	own, all := make([]dict, len(of)), ""
	for _, kind := range []struct {
		key, single name
		old         string
		data        func(*stored) [][]byte
	}{
		{"Certs", "Cert", r.Certs, func(s *stored) [][]byte { return s.certs }},
		{"CRLs", "CRL", r.CRLs, func(s *stored) [][]byte { return s.crls }},
		{"OCSPs", "OCSP", r.OCSPs, func(s *stored) [][]byte { return s.answers }},
	} {
		var list array
		for i := range of {
			var mine array
			for _, der := range kind.data(&of[i]) {
				if kind.key == "OCSPs" {
					der = ocsp.CreateResponse(der) // the store has whole responses
				}
				id, there := have[string(der)]
				if !there {
					id = u.add(&stream{fresh: der})
					have[string(der)] = id
					added[kind.key] = append(added[kind.key], der)
					list = append(list, id)
				}
				if !slices.Contains(mine, object(id)) {
					mine = append(mine, id)
				}
			}
			if len(mine) > 0 {
				own[i] = append(own[i], entry{kind.single, mine})
			}
		}
		if items := strings.TrimSpace(kind.old + " " + inside(appendObject(nil, list, nil))); items != "" {
			all += "/" + string(kind.key) + " [" + items + "]"
		}
	}
	vri := r.VRI
	for i, d := range own {
		key := vriKey(of[i].contents)
		if len(d) == 0 || strings.Contains(r.VRI, "/"+key+" ") {
			continue // one that is there stays as it is
		}
		vri += fmt.Sprintf("/%s %d 0 R", key, u.add(append(dict{{"Type", name("VRI")}}, d...)).num)
	}
	if vri != "" {
		vri = "/VRI <<" + vri + ">>"
	}
	store := fmt.Sprintf("<</Type /DSS%s%s%s>>", all, vri, r.More)
	u.put(ref{r.Store[0], r.Store[1]}, verbatim(store))
	u.put(ref{r.Catalog[0], r.Catalog[1]}, verbatim(fmt.Sprintf("<<%s/DSS %d %d R>>", r.Root, r.Store[0], r.Store[1])))
	u.close()
	return u.buf, added, nil
}

// vriKey names a signature by the value of its Contents.
func vriKey(contents []byte) string {
	digest := sha1.Sum(contents)
	return strings.ToUpper(hex.EncodeToString(digest[:]))
}
