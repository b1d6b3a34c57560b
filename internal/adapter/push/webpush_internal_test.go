// SPDX-License-Identifier: Apache-2.0

package push

import (
	"crypto/ecdh"
	"encoding/base64"
	"testing"

	"tamga/internal/domain/notify"
)

// TestEncryption is the example of RFC 8291, Appendix A (and section 5).
func TestEncryption(t *testing.T) {
	bytes := func(text string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	own, err := ecdh.P256().NewPrivateKey(bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	b := notify.Browser{
		Public: bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"), Secret: bytes("BTBZMqHH6r4Tts7J_aSIgg"),
	}
	got, err := encryptWith(b, own, bytes("DGv6ra1nlYgDCS1FRnbzlw"), append([]byte("When I grow up, I want to be a watermelon"), lastRecord))
	if err != nil {
		t.Fatal(err)
	}
	want := "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if text := base64.RawURLEncoding.EncodeToString(got); text != want {
		t.Errorf("got %s", text)
	}
}
