// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// operations are clients of the second version of the interface. They store a document and
// have it signed, always with an Idempotency-Key. They read one result in four at once.
type operations struct {
	mu     sync.Mutex
	inputs map[string]string // document of each client, by caller
	made   []operation
}

// operation is one that was answered.
type operation struct{ id, operation, result string }

func newOperations() *operations { return &operations{inputs: map[string]string{}} }

func (d *operations) step(c *caller) {
	input := d.input(c)
	if input == "" {
		return
	}
	id := c.next()
	r := request{id: id, key: id, method: "POST", path: "/SignServer/api/v2/signature", body: text(map[string]any{
		"BinaryData": []any{map[string]any{"RefId": input}}, "Signature": map[string]any{"Type": "CMS"},
	})}
	status, body := c.settle(r)
	var answer struct {
		Operation struct {
			ID     string `json:"Id"`
			Result struct {
				ProcessedDocuments []struct {
					RefID string `json:"RefId"`
				}
			}
		}
	}
	if err := json.Unmarshal(body, &answer); status != 200 || err != nil || len(answer.Operation.Result.ProcessedDocuments) != 1 {
		c.wrong("%s: an operation was answered %d %.300s", id, status, body)
		return
	}
	o := operation{id, answer.Operation.ID, answer.Operation.Result.ProcessedDocuments[0].RefID}
	if c.count%4 == 0 {
		if status, body := c.send(contentRequest(id, o.result)); status != 200 && !unknown(status) || status == 200 && len(body) == 0 {
			c.wrong("%s: the result was answered %d %.300s", id, status, body)
		}
	}
	if c.count%16 == 0 {
		if again, second := c.sendTo(c.other(), r); again == 200 && !bytes.Equal(second, body) {
			c.wrong("%s: one key has two operations", id)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made = append(d.made, o)
}

// input stores the document of a client once.
func (d *operations) input(c *caller) string {
	client := fmt.Sprint(c.number)
	d.mu.Lock()
	id := d.inputs[client]
	d.mu.Unlock()
	if id != "" {
		return id
	}
	status, body := c.send(uploadRequest(c.next(), []byte("the document of "+client)))
	id = uploaded(body)
	if status != 200 || id == "" {
		if !unknown(status) {
			c.wrong("storing a document was answered %d %.300s", status, body)
		}
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inputs[client] = id
	return id
}

func (d *operations) check(ctx context.Context, v *verification) {
	states, err := v.column(ctx, "SELECT id, state FROM operations")
	if err != nil {
		v.wrong("%v", err)
		return
	}
	documents, err := v.column(ctx, "SELECT id, state::text FROM documents")
	if err != nil {
		v.wrong("%v", err)
		return
	}
	seen := map[string]string{}
	for _, o := range d.made {
		if _, there := states[o.operation]; !there {
			v.wrong("%s: the operation %s is lost", o.id, o.operation)
		}
		if documents[o.result] != "1" {
			v.wrong("%s: the result %s is lost", o.id, o.result)
		}
		if before := seen[o.result]; before != "" {
			v.wrong("%s and %s have one result", o.id, before)
		}
		seen[o.result] = o.id
		v.once(o.id, "SignatureOperation")
	}
}
