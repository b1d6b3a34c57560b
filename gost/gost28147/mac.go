package gost28147

import (
	"encoding/binary"
	"fmt"
)

// MACSize is the length in octets of what MAC returns. Formats carry its first 4.
const MACSize = 8

// minMACInput is the shortest message: RFC 5830, section 8, defines the code for
// two blocks and more, the last of which may be a part of one.
const minMACInput = BlockSize + 1

// MAC returns the authentication code ("imit") of data, 9 octets or more, under a
// key of KeySize octets (RFC 5830, section 8). A message that ends within a block
// is filled up with zeros. The chain starts from iv, BlockSize octets; that of the
// RFC starts from zeros, that of a key wrap from its UKM. The key is not meshed.
func MAC(key, iv, data []byte, s *SBox) ([]byte, error) {
	b, err := newBlock(key, s)
	if err != nil {
		return nil, err
	}
	if len(iv) != BlockSize {
		return nil, fmt.Errorf("gost28147: initialization vector of %d octets, want %d", len(iv), BlockSize)
	}
	if len(data) < minMACInput {
		return nil, fmt.Errorf("gost28147: message of %d octets to authenticate, want %d or more", len(data), minMACInput)
	}
	x := binary.LittleEndian.Uint64(iv)
	for len(data) > 0 {
		var last [BlockSize]byte
		data = data[copy(last[:], data):]
		x = b.mac(x ^ binary.LittleEndian.Uint64(last[:]))
	}
	return binary.LittleEndian.AppendUint64(nil, x), nil
}
