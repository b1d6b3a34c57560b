// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"sync"
	"time"

	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// recorder is evidence that remembers its answers, so that the same document can be
// assembled again without asking the services. Its JSON is the answers by question.
type recorder struct {
	from sig.Evidence // nil: only the answers that are stored

	mu      sync.Mutex
	answers map[string]answer
}

// answer is what a service said. At most one field is set.
type answer struct {
	Token  []byte `json:"token,omitempty"`
	OCSP   []byte `json:"ocsp,omitempty"`
	CRL    []byte `json:"crl,omitempty"`
	Issuer []byte `json:"issuer,omitempty"`
}

// errNotRecorded means that assembling a document again asked something new.
var errNotRecorded = errors.New("signing: the evidence of a stored signature is not complete")

func question(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":"))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ask returns the stored answer, or asks and stores. Errors are not stored.
func (r *recorder) ask(question string, ask func() (answer, error)) (answer, error) {
	r.mu.Lock()
	a, ok := r.answers[question]
	r.mu.Unlock()
	if ok {
		return a, nil
	}
	if r.from == nil {
		return a, errNotRecorded
	}
	a, err := ask()
	if err != nil {
		return a, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = map[string]answer{}
	}
	r.answers[question] = a
	return a, nil
}

// TimeStamp implements sig.Evidence.
func (r *recorder) TimeStamp(ctx context.Context, address string, d suite.Digest) (*tsp.Verified, error) {
	var fresh *tsp.Verified
	a, err := r.ask(question([]byte("time stamp"), []byte(address), []byte(d.Hash.Name), d.Sum), func() (answer, error) {
		var err error
		if fresh, err = r.from.TimeStamp(ctx, address, d); err != nil {
			return answer{}, err
		}
		return answer{Token: fresh.Token().Raw}, nil
	})
	if err != nil || fresh != nil {
		return fresh, err
	}
	return tsp.Verify(a.Token, func(*suite.Hash) suite.Digest { return d }, nil)
}

// Revocation implements sig.Evidence.
func (r *recorder) Revocation(ctx context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time) (sig.Proof, error) {
	var proof sig.Proof // of a revoked certificate, with the error
	a, err := r.ask(question([]byte("revocation"), cert.Raw, issuer.Raw, []byte(notBefore.UTC().Format(time.RFC3339Nano))), func() (answer, error) {
		var err error
		proof, err = r.from.Revocation(ctx, cert, issuer, notBefore)
		return answer{OCSP: proof.OCSP, CRL: proof.CRL}, err
	})
	if err != nil {
		return proof, err
	}
	return sig.Proof{OCSP: a.OCSP, CRL: a.CRL}, nil
}

// Issuer implements sig.Evidence.
func (r *recorder) Issuer(ctx context.Context, cert *x509gost.Certificate) (*x509gost.Certificate, error) {
	a, err := r.ask(question([]byte("issuer"), cert.Raw), func() (answer, error) {
		c, err := r.from.Issuer(ctx, cert)
		if err != nil {
			return answer{}, err
		}
		return answer{Issuer: c.Raw}, nil
	})
	if err != nil {
		return nil, err
	}
	return x509gost.ParseCertificate(a.Issuer)
}
