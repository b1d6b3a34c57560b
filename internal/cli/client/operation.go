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

// batch is what one operation of the server signs or decrypts.
type batch struct {
	*cli.Console
	client  *client
	files   []*inputFile
	force   bool
	private bool                        // outputs are for their owner alone, and may be empty: plaintexts
	done    string                      // for errors: "signed"
	confirm func(address string) string // asks the user to confirm at an address
}

// carryOut sends a request and writes the results. If the user must confirm the operation, it waits for that.
func (b *batch) carryOut(path string, request func() (io.Reader, int64, error)) ([]outputFile, error) {
	bar := cli.NewProgress(b.Console)
	defer bar.Clear()
	total := int64(0)
	for _, f := range b.files {
		total = sum(total, f.content.size)
		f.content.Reader = bar.Reader(f.content.Reader)
	}
	bar.Stage(b.Text("sending"), total)
	body, size, err := request()
	if err != nil {
		return nil, err
	}
	answer, err := b.client.post(b.Context, path, body, size)
	if err != nil {
		return nil, err
	}
	bar.Stage(b.Text("receiving"), -1)
	op, results, err := b.receive(bar.Reader(answer.Body))
	err = errors.Join(err, answer.Body.Close())
	bar.Clear()
	if err == nil && op.waits() {
		op, results, err = b.await(op)
	}
	switch {
	case err != nil:
		return nil, err
	case op.Error != "":
		return nil, fmt.Errorf("nothing is %s: %s", b.done, cli.Printable(strings.TrimSpace(op.Error+" "+op.ErrorDescription)))
	case len(results) != len(b.files):
		return nil, errors.New("the server answered with fewer documents than files were sent")
	}
	return results, nil
}

// receive reads the answer of an operation, and writes the results in it.
func (b *batch) receive(answer io.Reader) (op operationHead, results []outputFile, err error) {
	var failed error // of an output, which is no fault of the answer
	op, err = readOperation(answer, func(d *processedDocument) error {
		if len(results) == len(b.files) {
			return errors.New("more documents than files were sent")
		}
		one, err := b.write(b.files[len(results)], d)
		results, failed = append(results, one), err
		return err
	})
	switch {
	case b.Context.Err() != nil:
		return op, results, b.Context.Err()
	case failed != nil:
		return op, results, failed
	case err != nil:
		return op, results, fmt.Errorf("the answer of the signing service: %w", err)
	}
	return op, results, nil
}

// await waits until the user has confirmed an operation and the server has carried it out. If this program is
// stopped, it cancels the operation.
func (b *batch) await(op operationHead) (_ operationHead, results []outputFile, err error) {
	id := op.ID
	fmt.Fprint(b.Stderr, b.confirm(b.client.page("/confirm/"+url.PathEscape(id))))
	for op.waits() {
		select {
		case <-b.Context.Done():
			return b.stop(id)
		case <-time.After(awaitEvery):
		}
		if op, results, err = b.look(id); b.Context.Err() != nil {
			return b.stop(id)
		} else if err != nil && !passes(err) {
			return op, results, err
		} else if err != nil { // the server is started again, and the operation is still there
			op.Status = "Created"
		}
	}
	return op, results, nil
}

// look asks for the state of an operation, and writes its results once it has ended.
func (b *batch) look(id string) (op operationHead, results []outputFile, err error) {
	answer, err := b.client.operation(b.Context, id)
	if err != nil {
		return op, nil, err
	}
	op, results, err = b.receive(answer)
	return op, results, errors.Join(err, answer.Close())
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
func (b *batch) stop(id string) (op operationHead, results []outputFile, err error) {
	ctx, end := context.WithTimeout(context.WithoutCancel(b.Context), tokenTimeout)
	defer end()
	err = b.client.cancel(ctx, id)
	if err == nil {
		return op, nil, stopped{b.done}
	}
	console, last := *b.Console, *b
	console.Context = ctx
	last.Console = &console
	if op, results, late := last.look(id); late == nil && !op.waits() {
		return op, results, nil
	}
	return op, nil, fmt.Errorf("operation %s is not cancelled and may still be carried out: %w", cli.Printable(id), err)
}

// stopped is the error of a program that was stopped and has cancelled its operation.
type stopped struct{ done string }

func (s stopped) Error() string { return "cancelled: nothing is " + s.done }

// Unwrap returns context.Canceled.
func (stopped) Unwrap() error { return context.Canceled }

// outputFile is what became of a file.
type outputFile struct {
	Input     string `json:"input"`
	File      string `json:"file,omitempty"`
	Type      string `json:"type"`
	Bytes     *int64 `json:"bytes,omitempty"`
	Integrity string `json:"integrity,omitempty"` // of a plaintext: Verified or None
	Error     string `json:"error,omitempty"`     // code
	Reason    string `json:"error_description,omitempty"`
}

// write writes the result of a file, if it has one.
func (b *batch) write(f *inputFile, d *processedDocument) (outputFile, error) {
	one := outputFile{Input: f.name, Type: f.kind}
	if f.written != nil { // by an answer that broke off later
		return *f.written, nil
	}
	if d.Error != nil {
		one.Error = *d.Error
	}
	if d.ErrorDescription != nil {
		one.Reason = *d.ErrorDescription
	}
	switch {
	case one.Error != "" || d.Status == "Created" || d.Status == "InProgress":
		return one, nil
	case d.Status == "Declined":
		one.Error = "authentication_declined"
		return one, nil
	}
	create := cli.CreateOutfile
	if b.private {
		create = cli.CreatePrivateOutfile
	} else if len(d.Content) == 0 {
		return one, errors.New("the server answered with an empty signature")
	}
	out, err := create(f.output, b.force)
	if err != nil {
		return one, err
	}
	defer out.Discard()
	if _, err := out.Write(d.Content); err != nil {
		return one, err
	}
	if err := out.Commit(); err != nil {
		return one, err
	}
	size := int64(len(d.Content))
	one.File, one.Bytes, one.Integrity = f.output, &size, d.Integrity
	f.written = &one
	return one, nil
}

// awaitEvery is the time between two questions whether an operation has ended.
const awaitEvery = 500 * time.Millisecond

// processedDocument is the result of one file.
type processedDocument struct {
	Status, Integrity       string
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
	answer, err := cl.do(req, service)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}
