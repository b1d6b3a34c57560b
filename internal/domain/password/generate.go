// SPDX-License-Identifier: Apache-2.0

package password

import (
	"fmt"
	"io"
)

// generatedAlphabet is the digits and lower-case letters without 0, o, 1, l and i, which
// are confused in print, on a screen or over the phone. It has no capitals: half of them
// differ from their small letters in size alone.
const generatedAlphabet = "23456789abcdefghjkmnpqrstuvwxyz"

// generatedLength is in characters: 31^13 passwords, 64.4 bits of entropy.
const generatedLength = 13

// Generate returns a random password of 13 characters from an alphabet of 31. All
// characters are equally likely: 64.4 bits of entropy.
func Generate(rand io.Reader) (string, error) {
	// fair is the largest multiple of the alphabet's length in a byte. Larger bytes are
	// drawn again, because they would favour the first characters.
	const fair = 256 / len(generatedAlphabet) * len(generatedAlphabet)
	password := make([]byte, 0, generatedLength)
	var drawn [2 * generatedLength]byte
	defer clear(drawn[:])
	for {
		if _, err := io.ReadFull(rand, drawn[:]); err != nil {
			return "", fmt.Errorf("password: reading random bytes for a password: %w", err)
		}
		for _, b := range drawn {
			if int(b) >= fair {
				continue
			}
			password = append(password, generatedAlphabet[int(b)%len(generatedAlphabet)])
			if len(password) == generatedLength {
				return string(password), nil
			}
		}
	}
}
