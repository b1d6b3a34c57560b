// SPDX-License-Identifier: Apache-2.0

package gost28147

import (
	"encoding/binary"
	"fmt"
)

// MACSize is the length in bytes of the result of MAC. Formats carry its first 4 bytes.
const MACSize = 8

// minMACInput is the length of the shortest message. RFC 5830, section 8, defines the
// code for two blocks or more, where the last block may be incomplete.
const minMACInput = BlockSize + 1

// MAC returns the message authentication code ("imit") of data under a key of KeySize
// bytes (RFC 5830, section 8). data must have 9 bytes or more. An incomplete last
// block is padded with zeros. iv is the start of the chain and must have BlockSize
// bytes: zeros for the code of the RFC, the UKM for a key wrap. The key is not meshed.
// Another length of key, iv or data and a nil set are errors.
func MAC(key, iv, data []byte, s *SBox) ([]byte, error) {
	b, err := newBlock(key, s)
	if err != nil {
		return nil, err
	}
	if len(iv) != BlockSize {
		return nil, fmt.Errorf("gost28147: initialization vector of %d bytes, want %d", len(iv), BlockSize)
	}
	if len(data) < minMACInput {
		return nil, fmt.Errorf("gost28147: MAC of a message of %d bytes, want %d or more", len(data), minMACInput)
	}
	x := binary.LittleEndian.Uint64(iv)
	for len(data) > 0 {
		var last [BlockSize]byte
		data = data[copy(last[:], data):]
		x = b.mac(x ^ binary.LittleEndian.Uint64(last[:]))
	}
	return binary.LittleEndian.AppendUint64(nil, x), nil
}
