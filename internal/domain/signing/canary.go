// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"tamga/pki/suite"
)

// Canary makes and verifies a signature with a fresh key of every suite, and checks that
// a changed digest is refused. The RSA key is a fixed one, since a new one takes most of the
// time of a start. A process must pass it before it reports that it is ready. It uses no
// stored key.
func Canary(rand io.Reader) error {
	for _, su := range suite.All() {
		key, err := canaryKey(rand, su)
		if err != nil {
			return fmt.Errorf("signing: canary: a %s key: %w", su.Name, err)
		}
		h := su.Hash.New()
		io.WriteString(h, "canary "+su.Name)
		d := suite.Digest{Hash: su.Hash, Sum: h.Sum(nil)}
		value, err := su.Sign(rand, key, d)
		if err != nil {
			return fmt.Errorf("signing: canary: signing with %s: %w", su.Name, err)
		}
		if err := su.Verify(key.Public(), d, value); err != nil {
			return fmt.Errorf("signing: canary: verifying with %s: %w", su.Name, err)
		}
		d.Sum[0] ^= 1
		if su.Verify(key.Public(), d, value) == nil {
			return fmt.Errorf("signing: canary: %s accepts a signature of another digest", su.Name)
		}
	}
	return nil
}

// canaryKey returns a key for Canary.
func canaryKey(rand io.Reader, su *suite.Suite) (crypto.Signer, error) {
	if su != suite.RSASHA256 {
		return su.Generate(rand)
	}
	der, err := base64.StdEncoding.DecodeString(canaryRSA)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("not a private key")
	}
	return signer, nil
}

// canaryRSA is the RSA key of Canary in PKCS #8. It is public and must never sign anything
// else.
const canaryRSA = `MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQCZrs/dCmy8coXbTCx8EPb2DhV3PJNZpSkpWxD1hyZ3
tX1Q/q5ndmKh5GEY+4feNsfZliLbInx2l5fjWDCttgmJXitxx/RKxeow6brnXhg3JOgBudv4bLqdowuTSjrDb5wslskj
8IOA/C+ab6bu+dsQ+yR8qPtqZC+6+XKd1IlYYP6QtzDzqljYcq1eWTFWJzGa5J4FOjoEWW0JSIgCP5rxbG99b0eOysI1
ZHRNaXG5bsZjbuWvLD6Z9A8X/sigUgBT0SqFlKumNkIoNlsb0skUKzCu1+tslT5/5GbAB6xJl02JJPbcEudzUvtzE53z
X8PSlZ8Fw/5OgV2FAF8fUXzZAgMBAAECggEAHAGOYcKvlBvupssX5DgXOTnR0ZvZYmHFwYKV8ZiCexg40RTIZZReXxBG
XY4g8W7cNpu0mGiNc/MmO8jrfgyJal4d3qtIqoOsrOM7K0SrdwkjuoTLQFdYHrgCuQGy+cCSHlIQL5t563yJlEQ6kJw5
vrt1p74Hqxi81f71UyvTJ6alDfZpMQNLMMJLfESCRDl+4q2twkW+AqWjYofCUHza1q+AMSwLHdzzDT+Iyc1vO0bmBSg7
8E9uKyk89lDYLeJtHjBRViXT1zaaVoeLC07CK4VIKCBsQuwZKNp8PKnB6ZHSuotb4Z5HxY0CVu+gNUO9yo34VWojNXlJ
+g/f42qbvQKBgQDKwArA5+yJDEqFyFWGK4so+AY/wRIhYGexuvc7AbBBR4RSMOqZAgs5agBEXhIGsP0oiQYSKb03IUSU
QB2gX8tEY7Zpvxlgr5/9WuaQjrp704prT23IG7tCbrLfaMc/zMkvooR1s0ugbAODgeeUpyjXP1w0kq2JNbOapHh7KrTh
wwKBgQDCC7eqmP0a+Cybn7QBEBPwihPW7P2Vk9qftxxm9HIKmWpxWmc5R7RC4+aOF6KBM/9L7URXcWJJVDcu4vyw17eF
PmBXedN0slP1QNmFbQ25WAwEmP+Y0OA98DvbxUzCEjE/e10U9IQc3oYm5Z6Es8TS2LjfIl/RCmN/Xsl7qtJBMwKBgQDB
dO6N1H4g4oZ1EotwYzn8VHR5/rpS+I7YykI+nkTUdO3wEta2OnoFRXyNv4jJs7VLKTuOtx7hbK/oGSlrrhvg3JfgXMRV
Oh6Ze1PGmTmdD2LjM73Xk4ZhRAkPHQYJfVh2SEbFm9fMcWQE5j3W3I0enUlYrKBC7Oe75bVEKKLBSwKBgCr3zUPJfMJs
EfSj+IgDt2acLKh68ewdQVv8gB2MI3SVZCyViCX26sOlE3iDY0iY6v81Gt0CDnGOZGnNeYbvPYQTu+Gi6F/+3PiB06jn
7RINnRunhXGhTwZoG9keZ1DSFnWoK4RoYJjD7ZDPZ7qa1AqcUtOWGQGA+2dI5fSsbsJhAoGBAKQSbHjWBXF1X2if1Eqi
Uy+oZvmyXXkxzmAvBIOUv7xiOX6HUwuEfNV3dM+qiZehGenlxN3BKgmfWtcRJ45ws1HcXKpL6e25FTx0HImkzQIb/qCB
+dRHBlqX3mXhWUF5l3G1zfgVHtvnaaSVfx2GGNaeoGeMfsIM5lyie6tX6rJr`
