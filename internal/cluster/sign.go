// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"tamga/sig"
	"tamga/sig/cades"
)

// signing are clients of the first version of the interface. One in four requests has an
// Idempotency-Key. Such a request is repeated until its outcome is known, and sometimes once
// more at another process, which must answer the same.
type signing struct {
	plain bool // no request has a key

	mu   sync.Mutex
	made []signed
}

// signed is a signature that was answered.
type signed struct {
	id      string
	message []byte // detached CMS over the id
}

func (d *signing) step(c *caller) {
	r := signRequest(c)
	var status int
	var body []byte
	if c.count%4 == 0 && !d.plain {
		r.key = r.id
		status, body = c.settle(r)
	} else {
		status, body = c.send(r)
	}
	if unknown(status) && r.key == "" {
		return // it was made or not, and the client does not have it
	}
	var message []byte
	if err := json.Unmarshal(body, &message); status != 200 || err != nil {
		c.wrong("%s: a signature was answered %d %.300s", r.id, status, body)
		return
	}
	if r.key != "" && c.count%16 == 0 {
		if again, second := c.sendTo(c.other(), r); again == 200 && !bytes.Equal(second, body) {
			c.wrong("%s: one key has two signatures", r.id)
		} else if again != 200 && !unknown(again) {
			c.wrong("%s: the repetition was answered %d %.300s", r.id, again, second)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made = append(d.made, signed{r.id, message})
}

// signRequest asks for a detached signature over the name of the operation.
func signRequest(c *caller) request {
	id := c.next()
	return request{id: id, method: "POST", path: "/SignServer/api/documents", body: text(map[string]any{
		"Content": []byte(id),
		"Signature": map[string]any{
			"Type": "CAdES", "Parameters": map[string]string{"IsDetached": "True"}, "CertificateId": c.who.cert, "PinCode": c.who.pin,
		},
	})}
}

func (d *signing) check(ctx context.Context, v *verification) {
	for _, s := range d.made {
		v.once(s.id, "SignDocument")
		v.valid(ctx, s)
	}
}

// valid verifies a message with our own implementation. That other programs agree is what
// the tests of the formats check.
func (v *verification) valid(ctx context.Context, s signed) {
	report, err := cades.New().Verify(ctx, &sig.Check{
		Document: bytes.NewReader(s.message), Original: strings.NewReader(s.id), Roots: v.roots, At: time.Now(),
	})
	if err != nil || report.Verdict() != sig.Passed || len(report.Signatures) != 1 {
		v.wrong("%s: the signature does not verify: %v %+v", s.id, err, report)
	}
}
