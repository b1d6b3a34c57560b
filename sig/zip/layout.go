// SPDX-License-Identifier: Apache-2.0

package zip

import "math"

// Stored is an entry of a new archive, whose content the caller has. It is not compressed.
type Stored struct {
	Name  string
	Size  int64 // in bytes
	CRC32 uint32
}

// Layout lays out a new archive: heads[i] is written before the content of entry i, tail after the last
// content. Names must differ. Entries have the date 1 January 1980, and no extra fields but Zip64 for the ones of
// 4 GiB and more.
//
// Errors: *Error for a name that Open refuses or that has more than 65,535 bytes, and for more than MaxEntries
// entries.
func Layout(entries []Stored) (heads [][]byte, tail []byte, err error) {
	if len(entries) > MaxEntries {
		return nil, nil, refused(TooLarge, "", "would have %d entries; at most %d are accepted", len(entries), MaxEntries)
	}
	heads = make([][]byte, len(entries))
	var directory []byte
	var at int64
	for i, e := range entries {
		if err := checkName(e.Name); err != nil {
			return nil, nil, err
		}
		if len(e.Name) > math.MaxUint16 {
			return nil, nil, refused(TooLarge, e.Name, "the entry name %s has %d bytes; at most %d are possible", quote(e.Name), len(e.Name), math.MaxUint16)
		}
		p := &packed{name: e.Name, crc: e.CRC32, size: e.Size, length: e.Size, offset: at}
		heads[i] = p.local()
		directory = append(directory, p.central()...)
		at += int64(len(heads[i])) + e.Size
	}
	return heads, append(directory, endOf(len(entries), at, int64(len(directory)), nil)...), nil
}
