// SPDX-License-Identifier: Apache-2.0

package otp_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"tamga/internal/domain/oath/otp"
	"tamga/internal/judge"
)

var judged = flag.Int("judged", 100, "random tokens that oathtool judges in each direction")

// TestJudgedByOathtool: oathtool computes the codes we do, and takes those of ours, for
// tokens at random.
func TestJudgedByOathtool(t *testing.T) {
	tool := judge.OATHToolkit(t)
	random := rand.New(rand.NewPCG(4226, 6238))
	for n := range *judged {
		a := []otp.Algorithm{otp.SHA1, otp.SHA256, otp.SHA512}[random.IntN(3)]
		secret := make([]byte, otp.MinSecret+random.IntN(112))
		for i := range secret {
			secret[i] = byte(random.Uint32())
		}
		digits := otp.MinDigits + random.IntN(3)
		const count = 20
		var theirs []string
		var first int64
		var accepts func(offset int, code string) (int, bool)
		if n%2 == 0 {
			a = otp.SHA1 // of HOTP the tool knows no other
			first = random.Int64N(1 << 40)
			theirs = tool.HOTP(secret, digits, first, count)
			accepts = func(offset int, code string) (int, bool) {
				return tool.AcceptsHOTP(secret, digits, first, count, code)
			}
		} else {
			period := time.Duration(10+random.IntN(120)) * time.Second
			at := time.Unix(random.Int64N(1<<33), 0)
			first = otp.Step(at, period)
			theirs = tool.TOTP(string(a), secret, digits, period, at, count)
			accepts = func(offset int, code string) (int, bool) {
				return tool.AcceptsTOTP(string(a), secret, digits, period, at.Add(time.Duration(offset)*period), 0, code)
			}
		}
		key, err := otp.New(a, digits, secret)
		if err != nil {
			t.Fatal(err)
		}
		if len(theirs) != count {
			t.Fatalf("oathtool made %d codes", len(theirs))
		}
		for i, code := range theirs {
			step := first + int64(i)
			if ours := key.Code(step); ours != code {
				t.Fatalf("token %d, %s, step %d: oathtool says %s, we %s", n, a, step, code, ours)
			}
			if got, ok := key.Match(code, step, step+10); !ok || got != step {
				t.Fatalf("token %d, %s: the code of oathtool for step %d matches step %d, %t", n, a, step, got, ok)
			}
		}
		offset := random.IntN(count)
		code := key.Code(first + int64(offset))
		if _, ok := accepts(offset, code); !ok {
			t.Fatalf("token %d, %s: oathtool does not take our code %s for step %d", n, a, code, first+int64(offset))
		}
		wrong := []byte(code)
		wrong[0] = '0' + (wrong[0]-'0'+1)%10
		if _, ok := accepts(offset, string(wrong)); ok && n%2 == 1 {
			t.Fatalf("token %d: oathtool takes anything", n)
		}
	}
	t.Logf("%d tokens", *judged)
}
