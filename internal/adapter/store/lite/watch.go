// SPDX-License-Identifier: Apache-2.0

package lite

import "encoding/binary"

// State identifies the committed content of a file. Two equal states of one Watch mean that no
// connection of any process has committed in between.
//
// A state is the header of the index of the write-ahead log: number of the change, number of
// frames, their checksum and the salts of the log (https://www.sqlite.org/walformat.html, section
// 2.1). SQLite itself compares these 48 bytes to find out whether what it has read is still the
// content of the file. A commit writes them after its frames are on the disk, and before it returns.
type State [6]uint64

const (
	// stateBytes is the length of a header. The index begins with two copies of it.
	stateBytes = 48
	// indexFormat is the number of the format, the first four bytes of a header, of which SQLite
	// says that it changes when the header does.
	indexFormat = 3007000
	// indexBytes is the least length of the index of an open file: it grows in such steps.
	indexBytes = 32 << 10
)

// valid reports whether the header belongs to an index of a known format that is in use.
func (s State) valid() bool {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:8], s[0])
	binary.NativeEndian.PutUint64(b[8:], s[1])
	initialized := b[12] == 1
	return initialized && binary.NativeEndian.Uint32(b[:4]) == indexFormat
}
