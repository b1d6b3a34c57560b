// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
)

// What is read into memory is charged before, and a refusal ends the reading.
func TestParseWithin(t *testing.T) {
	message := rewrite(t, small(t), Changes{Certificates: [][]byte{wrap(tagSequence, make([]byte, 1<<20))}})
	var held int64
	if _, err := ParseWithin(bytes.NewReader(message), int64(len(message)), func(n int64) error { held += n; return nil }); err != nil || held < 1<<20 || held > 2<<20 {
		t.Errorf("%d bytes were charged, %v", held, err)
	}
	full := errors.New("full")
	if _, err := ParseWithin(bytes.NewReader(message), int64(len(message)), func(n int64) error {
		if n >= 1<<20 {
			return full
		}
		return nil
	}); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// Lists whose length a message decides are charged before they grow: a message that asks for
// much more memory than it has bytes is refused before it gets it.
func TestListsChargedBeforeAllocated(t *testing.T) {
	const limit = 1 << 20
	signer := func(unsigned []byte) []byte {
		key := wrap(0x80, []byte{1})
		algorithm := wrap(tagSequence, wrap(tagOID, []byte{0x2a, 3}))
		fields := [][]byte{{2, 1, 3}, key, algorithm, algorithm, wrap(tagOctetString, []byte{1}), wrap(0xa1, unsigned)}
		return wrap(tagSequence, bytes.Join(fields, nil))
	}
	message := func(content, signers []byte) []byte {
		inside := wrap(tagSequence, bytes.Join([][]byte{marshalOID(OIDData), content}, nil))
		data := wrap(tagSequence, bytes.Join([][]byte{{2, 1, 3}, {tagSet, 0}, inside, wrap(tagSet, signers)}, nil))
		return wrap(tagSequence, bytes.Join([][]byte{marshalOID(OIDSignedData), wrap(tagContext0, data)}, nil))
	}
	attribute := wrap(tagSequence, []byte{6, 1, 0x2a, tagSet, 2, 5, 0})
	values := wrap(tagSequence, append([]byte{6, 1, 0x2a}, wrap(tagSet, bytes.Repeat([]byte{5, 0}, maxValues))...))
	for name, data := range map[string][]byte{
		"pieces":     message(wrap(tagContext0, wrap(tagOctetString|bitConstructed, bytes.Repeat([]byte{4, 1, 0}, 1<<18))), nil),
		"attributes": message(nil, bytes.Repeat(signer(bytes.Repeat(attribute, maxAttrs)), 256)),
		"values":     message(nil, bytes.Repeat(signer(values), 128)),
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := Parse(bytes.NewReader(data), int64(len(data))); err != nil || len(m.Content)+len(m.Signers) < 128 {
				t.Fatalf("without a limit: %v", err)
			}
			full := errors.New("full")
			left := int64(limit)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := ParseWithin(bytes.NewReader(data), int64(len(data)), func(n int64) error {
				if left -= n; left < 0 {
					return full
				}
				return nil
			})
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, full) || took > 2*limit {
				t.Errorf("%d KiB were allocated with a limit of %d KiB for a message of %d KiB, %v", took>>10, limit>>10, len(data)>>10, err)
			}
		})
	}
}
