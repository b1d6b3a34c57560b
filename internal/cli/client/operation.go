// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tamga/internal/cli"
)

// await waits until the user has confirmed an operation and the server has carried it out. If this program is
// stopped, it cancels the operation.
func (s *Sign) await(c *cli.Console, cl *client, op operationHead, list []*signFile) (_ operationHead, done []signedFile, err error) {
	id := op.ID
	fmt.Fprint(c.Stderr, c.Text("To confirm the signatures, open %s and choose how. This program waits; Ctrl-C cancels them.\n", cl.page("/confirm/"+url.PathEscape(id))))
	for op.waits() {
		select {
		case <-c.Context.Done():
			return s.stop(c, cl, id, list)
		case <-time.After(awaitEvery):
		}
		if op, done, err = s.look(c, cl, id, list); c.Context.Err() != nil {
			return s.stop(c, cl, id, list)
		} else if err != nil && !passes(err) {
			return op, done, err
		} else if err != nil { // the server is started again, and the operation is still there
			op.Status = "Created"
		}
	}
	return op, done, nil
}

// look asks for the state of an operation, and writes its results once it has ended.
func (s *Sign) look(c *cli.Console, cl *client, id string, list []*signFile) (op operationHead, done []signedFile, err error) {
	answer, err := cl.operation(c.Context, id)
	if err != nil {
		return op, nil, err
	}
	op, done, err = s.receive(c, answer, list)
	return op, done, errors.Join(err, answer.Close())
}

// passes reports whether an error of look may be over soon.
func passes(err error) bool {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.status >= http.StatusInternalServerError || refused.status == http.StatusTooManyRequests
	}
	var away *net.OpError
	return errors.As(err, &away) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// stop cancels an operation because this program is stopped. If it was carried out before that, its results are
// written.
func (s *Sign) stop(c *cli.Console, cl *client, id string, list []*signFile) (op operationHead, done []signedFile, err error) {
	ctx, end := context.WithTimeout(context.WithoutCancel(c.Context), tokenTimeout)
	defer end()
	err = cl.cancel(ctx, id)
	if err == nil {
		return op, nil, stopped{}
	}
	last := *c
	last.Context = ctx
	if op, done, late := s.look(&last, cl, id, list); late == nil && !op.waits() {
		return op, done, nil
	}
	return op, nil, fmt.Errorf("operation %s is not cancelled and may still be carried out: %w", cli.Printable(id), err)
}

// stopped is the error of a program that was stopped and has cancelled its operation.
type stopped struct{}

func (stopped) Error() string { return "cancelled: nothing is signed" }

// Unwrap returns context.Canceled.
func (stopped) Unwrap() error { return context.Canceled }

// awaitEvery is the time between two questions whether an operation has ended.
const awaitEvery = 500 * time.Millisecond

// processedDocument is the result of one file.
type processedDocument struct {
	Status                  string
	Error, ErrorDescription *string
	Content                 []byte
}

// operationHead is what an answer says of an operation besides its result.
type operationHead struct{ ID, Status, Error, ErrorDescription string }

// waits reports whether the operation has not ended.
func (o *operationHead) waits() bool { return o.Status == "Created" || o.Status == "Processing" }

// readOperation reads the answer of an operation and calls each for its documents, one after the other: only one
// of them is in memory.
func readOperation(r io.Reader, each func(d *processedDocument) error) (op operationHead, err error) {
	d := json.NewDecoder(r)
	err = object(d, func(key string) error {
		if !strings.EqualFold(key, "Operation") {
			return d.Decode(new(json.RawMessage))
		}
		return object(d, func(key string) error {
			switch strings.ToLower(key) {
			case "id":
				return d.Decode(&op.ID)
			case "status":
				return d.Decode(&op.Status)
			case "error":
				return d.Decode(&op.Error)
			case "errordescription":
				return d.Decode(&op.ErrorDescription)
			case "result":
				return object(d, func(key string) error {
					if !strings.EqualFold(key, "ProcessedDocuments") {
						return d.Decode(new(json.RawMessage))
					}
					return documents(d, each)
				})
			}
			return d.Decode(new(json.RawMessage))
		})
	})
	return op, err
}

// object calls value for each key of a JSON object, which reads the value. null has none.
func object(d *json.Decoder, value func(key string) error) error {
	t, err := d.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('{') {
		return errors.New("not an operation")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if err := value(key.(string)); err != nil { // the decoder has no other keys
			return err
		}
	}
	_, err = d.Token()
	return err
}

func documents(d *json.Decoder, each func(d *processedDocument) error) error {
	t, err := d.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('[') {
		return errors.New("not a list of documents")
	}
	for d.More() {
		var one processedDocument
		if err := d.Decode(&one); err != nil {
			return err
		}
		if err := each(&one); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// page returns the address of a page of the server.
func (cl *client) page(path string) string {
	u, err := url.Parse(cl.server)
	if err != nil {
		return cl.server
	}
	return u.Scheme + "://" + u.Host + path
}

// operation asks for the state of an operation, with its results once it has ended. The caller closes the answer. A
// token is valid for a shorter time than users take to confirm, so the program gets another one.
func (cl *client) operation(ctx context.Context, id string) (io.ReadCloser, error) {
	for again := false; ; again = true {
		answer, err := cl.request(ctx, http.MethodGet, cl.server+"/api/v2/signature/"+url.PathEscape(id), signingService)
		var refused *refusal
		if !errors.As(err, &refused) || refused.status != http.StatusUnauthorized || cl.grant == nil || again {
			return answer, err
		}
		if err := cl.signIn(ctx); err != nil {
			return nil, err
		}
	}
}

// cancel cancels an operation.
func (cl *client) cancel(ctx context.Context, id string) error {
	answer, err := cl.request(ctx, http.MethodDelete, cl.idp+"/operations/"+url.PathEscape(id), identityProvider)
	if err != nil {
		return err
	}
	return answer.Close()
}

// request sends a request without a body and returns the answer. The caller closes it.
func (cl *client) request(ctx context.Context, method, address, service string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	return cl.do(req, service)
}
