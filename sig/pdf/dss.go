// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"

	"tamga/pki/cms"
	"tamga/pki/ocsp"
	"tamga/sig"
	"tamga/sig/cades"
)

// revision describes the revision that adds the document security store, once the section
// before it is closed. It returns nil for a format without one. A new store has a number
// after Size of the signed revision: for other programs a number below it without an entry
// in the cross-references is a removed object that came back.
func (m *maker) revision(rootID ref, root dict) *revision {
	if m.params.level < sig.LevelLongTerm {
		return nil
	}
	f, u := m.file, m.update
	r := &revision{
		Encrypted: u.crypt != nil, Stream: u.stream || u.start > maxTable, Bias: u.bias, Prev: u.start,
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
// of Contents, whose digest names the signature. added is what the arrays of the store
// get. hold charges for memory.
func (st *state) securityStore(message, contents []byte, locked *crypt, hold func(bytes int64) error) (data []byte, added map[name][][]byte, err error) {
	r := st.Revision
	m, err := cms.ParseWithin(bytes.NewReader(message), int64(len(message)), hold)
	if err != nil {
		return nil, nil, fmt.Errorf("pdf: the message: %w", err)
	}
	if len(m.Signers) != 1 {
		return nil, nil, fmt.Errorf("pdf: the message has %d signers", len(m.Signers))
	}
	certs, crls, answers := cades.Values(m.Signers[0])
	certs = append(append([][]byte(nil), m.Certificates...), certs...)
	for i := range answers { // the store has whole responses
		answers[i] = ocsp.CreateResponse(answers[i])
	}
	u := &update{
		base: st.Size + int64(len(st.Head)) + holeOf(st.Room) + int64(len(st.Tail)),
		bias: r.Bias, stream: r.Stream, prev: r.Prev, next: r.Next, crypt: locked, holeAt: -1, placed: map[int]place{},
	}
	trailer, err := lexBytes([]byte("<<" + r.Trailer + ">>")).object()
	if err != nil {
		return nil, nil, fmt.Errorf("pdf: the trailer of the prepared state: %w", err)
	}
	u.trailer, _ = trailer.(dict)
	added = map[name][][]byte{}

	digest := sha1.Sum(contents)
	own, all := dict{{"Type", name("VRI")}}, ""
	seen := map[string]bool{}
	for _, kind := range []struct {
		key, single name
		old         string
		data        [][]byte
	}{{"Certs", "Cert", r.Certs, certs}, {"CRLs", "CRL", r.CRLs, crls}, {"OCSPs", "OCSP", r.OCSPs, answers}} {
		var list array
		for _, der := range kind.data {
			if !seen[string(der)] {
				seen[string(der)] = true
				added[kind.key] = append(added[kind.key], der)
				list = append(list, u.add(&stream{fresh: der}))
			}
		}
		if items := strings.TrimSpace(kind.old + " " + inside(appendObject(nil, list, nil))); items != "" {
			all += "/" + string(kind.key) + " [" + items + "]"
		}
		if len(list) > 0 {
			own = append(own, entry{kind.single, list})
		}
	}
	vri := u.add(own)
	key := strings.ToUpper(hex.EncodeToString(digest[:]))
	store := fmt.Sprintf("<</Type /DSS%s/VRI <<%s/%s %d 0 R>>%s>>", all, r.VRI, key, vri.num, r.More)
	u.put(ref{r.Store[0], r.Store[1]}, verbatim(store))
	u.put(ref{r.Catalog[0], r.Catalog[1]}, verbatim(fmt.Sprintf("<<%s/DSS %d %d R>>", r.Root, r.Store[0], r.Store[1])))
	u.close()
	return u.buf, added, nil
}
