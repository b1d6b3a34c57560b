package password

import (
	"fmt"
	"io"
)

// generatedAlphabet are lower-case letters and digits without those that are taken
// for each other in print, on a screen or over the phone: 0 and o, 1, l and i, and
// the capitals, half of which differ from their letters in size alone.
const generatedAlphabet = "23456789abcdefghjkmnpqrstuvwxyz"

// generatedLength makes 31^13 passwords, an entropy of 64.4 bits.
const generatedLength = 13

// Generate draws a password of 13 characters from an alphabet of 31, each as
// likely as the others: 64.4 bits of entropy.
func Generate(rand io.Reader) (string, error) {
	// The largest multiple of the alphabet in an octet; what is above would favour
	// its first characters and is drawn again.
	const fair = 256 / len(generatedAlphabet) * len(generatedAlphabet)
	password := make([]byte, 0, generatedLength)
	var drawn [2 * generatedLength]byte
	defer clear(drawn[:])
	for {
		if _, err := io.ReadFull(rand, drawn[:]); err != nil {
			return "", fmt.Errorf("auth: making a password: %w", err)
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
