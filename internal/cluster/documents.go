// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// documents are clients of the document store. They store documents of several sizes, read
// them at another process, and delete some.
type documents struct {
	mu   sync.Mutex
	kept []kept
}

// kept is a document that was stored.
type kept struct {
	id, document string
	who          account
	sum          [sha256.Size]byte
	deleted      bool
}

// documentSizes are the sizes in turn. The last is larger than what a bucket takes at once.
var documentSizes = []int{100, 5_000, 60_000, 400_000}

func newDocuments() *documents { return &documents{} }

func (d *documents) step(c *caller) {
	id := c.next()
	content := bytes.Repeat([]byte(id+" "), documentSizes[c.count%len(documentSizes)]/len(id)+1)
	status, body := c.send(uploadRequest(id, content))
	if unknown(status) {
		return
	}
	k := kept{id: id, document: uploaded(body), who: c.who, sum: sha256.Sum256(content)}
	if status != 200 || k.document == "" {
		c.wrong("%s: storing was answered %d %.300s", id, status, body)
		return
	}
	if status, got := c.sendTo(c.other(), contentRequest(id, k.document)); status == 200 && !bytes.Equal(got, content) || status != 200 && !unknown(status) {
		c.wrong("%s: reading was answered %d with %d bytes, %d were stored", id, status, len(got), len(content))
	}
	if c.count%8 == 0 {
		r := contentRequest(id, k.document)
		r.method, r.path = "DELETE", "/DocumentStore/api/documents/"+k.document
		status, body := c.send(r)
		if unknown(status) {
			return // it is there or not
		}
		if status != 200 {
			c.wrong("%s: deleting was answered %d %.300s", id, status, body)
		}
		k.deleted = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = append(d.kept, k)
}

// uploadRequest stores a document.
func uploadRequest(id string, content []byte) request {
	return request{id: id, method: "POST", path: "/DocumentStore/api/documents", body: content, headers: map[string]string{
		"CPDSS-POSTDOC": base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"Filename":%q}`, id)), "Content-Type": "application/octet-stream",
	}}
}

// uploaded is the identifier in the answer.
func uploaded(body []byte) string {
	var answer struct {
		DocumentID string `json:"DocumentId"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return ""
	}
	return answer.DocumentID
}

// contentRequest reads a document.
func contentRequest(id, document string) request {
	return request{id: id, method: "GET", path: "/DocumentStore/api/documents/" + document + "/content"}
}

func (d *documents) check(ctx context.Context, v *verification) {
	client := &caller{session: v.session, kind: "reading", http: &http.Client{Timeout: longest}}
	for _, k := range d.kept {
		client.who = k.who
		status, got, err := client.try(ctx, 0, contentRequest(k.id, k.document))
		for end := time.Now().Add(longest); unknown(status) && time.Now().Before(end); status, got, err = client.try(ctx, 0, contentRequest(k.id, k.document)) {
			pause(100 * time.Millisecond)
		}
		switch {
		case k.deleted && status == 200:
			v.wrong("%s: the document was deleted and is there", k.id)
		case k.deleted:
		case status != 200 || sha256.Sum256(got) != k.sum:
			v.wrong("%s: the document is lost: %d, %d bytes, %v", k.id, status, len(got), err)
		}
	}
}
