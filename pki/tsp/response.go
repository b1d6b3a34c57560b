// SPDX-License-Identifier: Apache-2.0

package tsp

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

const maxText = 1024 // bytes of the authority's text that are kept

// ParseResponse reads a TimeStampResp of at most MaxResponse bytes. Nothing may follow it.
// If the status is neither granted nor granted with modifications, the error is a
// *RejectedError.
func ParseResponse(der []byte) (*Token, error) {
	if len(der) > MaxResponse {
		return nil, fmt.Errorf("tsp: response: %d bytes are more than the %d allowed", len(der), MaxResponse)
	}
	in := cryptobyte.String(der)
	var outer, info cryptobyte.String
	if !in.ReadASN1(&outer, cbasn1.SEQUENCE) || !in.Empty() || !outer.ReadASN1(&info, cbasn1.SEQUENCE) {
		return nil, errors.New("tsp: response: not a TimeStampResp")
	}
	rejected, err := readStatus(info)
	if err != nil {
		return nil, fmt.Errorf("tsp: response: %w", err)
	}
	if rejected.Status != Granted && rejected.Status != GrantedWithMods {
		return nil, rejected
	}
	if outer.Empty() {
		return nil, errors.New("tsp: response: the status is granted, but the time stamp is missing")
	}
	// The rest is the token. It may be BER, which cryptobyte does not read.
	return ParseToken(outer)
}

// readStatus reads the content of PKIStatusInfo.
func readStatus(in cryptobyte.String) (*RejectedError, error) {
	e := &RejectedError{FailInfo: NoFailInfo}
	var status int
	if !in.ReadASN1Integer(&status) || status < 0 {
		return nil, errors.New("the status is not a number")
	}
	e.Status = Status(status)
	var texts, fail cryptobyte.String
	if !in.ReadOptionalASN1(&texts, nil, cbasn1.SEQUENCE) {
		return nil, errors.New("statusString is malformed")
	}
	var words []string
	for size := 0; !texts.Empty(); {
		var text cryptobyte.String
		if !texts.ReadASN1(&text, cbasn1.UTF8String) {
			return nil, errors.New("statusString is not a list of UTF8String")
		}
		if size += len(text); size <= maxText && utf8.Valid(text) {
			words = append(words, string(text))
		}
	}
	e.Text = strings.Join(words, "; ")
	var present bool
	if !in.ReadOptionalASN1(&fail, &present, cbasn1.BIT_STRING) || !in.Empty() {
		return nil, errors.New("failInfo is malformed")
	}
	if present {
		e.FailInfo = firstBit(fail)
	}
	return e, nil
}

// firstBit returns the first bit set in the content of a BIT STRING. An authority gives one
// reason.
func firstBit(content []byte) FailInfo {
	if len(content) == 0 {
		return NoFailInfo
	}
	for i, part := range content[1:] {
		if part != 0 && i < 8 {
			return FailInfo(8*i + bits.LeadingZeros8(part))
		}
	}
	return NoFailInfo
}

// CreateResponse returns a TimeStampResp that grants a token.
func CreateResponse(token []byte) []byte {
	b := cryptobyte.NewBuilder(make([]byte, 0, len(token)+16))
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1Int64(int64(Granted)) })
		b.AddBytes(token)
	})
	return b.BytesOrPanic() // cannot fail: it only joins bytes
}

// CreateRejection returns a TimeStampResp without a token. An empty text and NoFailInfo are
// omitted.
func CreateRejection(status Status, fail FailInfo, text string) []byte {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1Int64(int64(status))
			if text != "" {
				b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1(cbasn1.UTF8String, func(b *cryptobyte.Builder) { b.AddBytes([]byte(text)) })
				})
			}
			if fail >= 0 {
				// A named BIT STRING ends with its last set bit (X.690, 11.2.2).
				flags := make([]byte, fail/8+1)
				flags[fail/8] = 0x80 >> (fail % 8)
				b.AddASN1(cbasn1.BIT_STRING, func(b *cryptobyte.Builder) {
					b.AddUint8(uint8(7 - fail%8))
					b.AddBytes(flags)
				})
			}
		})
	})
	return b.BytesOrPanic()
}
