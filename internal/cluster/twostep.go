// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// twoStep are clients who sign with a key of their own: presign at one process, postsign at
// another. Sometimes they complete an object again, which must be refused.
type twoStep struct {
	key func() (*ownKey, error)

	mu   sync.Mutex
	made []completed
}

// completed is an object that was prepared. done: its completion was answered.
type completed struct {
	id, object string
	done       bool
}

// ownKey is the key of the clients with its certificate.
type ownKey struct {
	suite *suite.Suite
	cert  *x509gost.Certificate
	sign  x509gost.SignFunc
}

func newTwoStep() *twoStep { return &twoStep{key: sync.OnceValues(newOwnKey)} }

func newOwnKey() (*ownKey, error) {
	su, _ := suite.ByName("gost2012-256")
	key, err := su.Generate(rand.Reader)
	if err != nil {
		return nil, err
	}
	sign := func(d suite.Digest) ([]byte, error) { return su.Sign(rand.Reader, key, d) }
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "A client"}})
	if err != nil {
		return nil, err
	}
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: name, SerialNumber: []byte{1}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}, nil, key.Public(), su, su, sign)
	if err != nil {
		return nil, err
	}
	cert, err := x509gost.ParseCertificate(der)
	return &ownKey{su, cert, sign}, err
}

func (d *twoStep) step(c *caller) {
	key, err := d.key()
	if err != nil {
		c.wrong("making a key: %v", err)
		return
	}
	id := c.next()
	params := map[string]string{"IsDetached": "true", "CADESType": "BES"}
	status, body := c.send(request{id: id, method: "POST", path: "/SignServer/api/signatures/presign", body: text(map[string]any{
		"Document": []byte(id), "RawCertificate": key.cert.Raw, "SignatureType": "CAdES", "SignatureParams": params,
	})})
	if unknown(status) {
		return
	}
	var prepared struct {
		HashValue     []byte
		CacheObjectID string `json:"CacheObjectId"`
	}
	if err := json.Unmarshal(body, &prepared); status != 200 || err != nil {
		c.wrong("%s: presign was answered %d %.300s", id, status, body)
		return
	}
	value, err := key.sign(suite.Digest{Hash: key.suite.Hash, Sum: prepared.HashValue})
	if err != nil {
		c.wrong("%s: %v", id, err)
		return
	}
	post := request{id: id, method: "POST", path: "/SignServer/api/signatures/postsign", body: text(map[string]any{
		"CacheObjectId": prepared.CacheObjectID, "SignatureType": "CAdES", "SignatureValue": value, "SignedHashValue": prepared.HashValue, "SignatureParams": params,
	})}
	if c.count%4 == 0 {
		post.key = id
		status, body = c.settle(post)
	} else {
		status, body = c.sendTo(c.other(), post)
	}
	done := status == 200
	if !done && !unknown(status) {
		c.wrong("%s: postsign was answered %d %.300s", id, status, body)
	}
	if done && c.count%16 == 1 {
		post.refusal = true
		if again, second := c.send(post); again == 200 {
			c.wrong("%s: an object was completed twice", id)
		} else if !unknown(again) && !strings.Contains(string(second), "invalid_object_state") {
			c.wrong("%s: a second completion was answered %d %.300s", id, again, second)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made = append(d.made, completed{id, prepared.CacheObjectID, done})
}

func (d *twoStep) check(ctx context.Context, v *verification) {
	spent, err := v.column(ctx, "SELECT id, CASE WHEN spent_at = 0 THEN 'open' ELSE 'spent' END FROM prepared")
	if err != nil {
		v.wrong("%v", err)
		return
	}
	for _, o := range d.made {
		state, there := spent[o.object]
		switch {
		case !there:
			v.wrong("%s: the prepared object is lost", o.id)
		case o.done && state != "spent":
			v.wrong("%s: the completed object is still open", o.id)
		}
		if o.done {
			v.once(o.id, "PostSignDocument")
		} else {
			v.atMostOnce(o.id, "PostSignDocument")
		}
	}
}
