// SPDX-License-Identifier: Apache-2.0

package phone

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tamga/internal/cli"
	"tamga/internal/domain/confirm/what"
	devmsg "tamga/internal/domain/device/message"
)

// operation is an operation with all its documents, as the device has read it.
type operation struct {
	devmsg.Waiting
	fields what.Fields
	sum    what.Digest // computed by the device
}

// maxParts bounds the answers that one list or one operation may take.
const maxParts = 1000

// list reads all operations that wait for the device.
func (f phoneFlags) list(c *cli.Console, p *phone) ([]devmsg.Waiting, devmsg.Answer, error) {
	list := []devmsg.Waiting{}
	after := ""
	for range maxParts {
		a, err := f.poll(c.Context, p, devmsg.PollRequest{After: after})
		if err != nil {
			return nil, a, err
		}
		list = append(list, a.Operations...)
		if a.Next == "" {
			return list, a, nil
		}
		after = a.Next
	}
	return nil, devmsg.Answer{}, fmt.Errorf("the service lists operations in more than %d parts", maxParts)
}

// readOperation reads an operation with all its documents and computes its digest. The error says so if
// the service named another digest.
func (f phoneFlags) readOperation(c *cli.Console, p *phone, id string) (*operation, error) {
	var o operation
	for range maxParts {
		a, err := f.send(c.Context, p, devmsg.Operation, devmsg.OperationRequest{ID: id, From: len(o.fields.Documents)})
		if err != nil {
			return nil, err
		}
		if len(a.Operations) != 1 {
			return nil, errors.New("the answer of the service has no operation")
		}
		part := a.Operations[0]
		if len(o.fields.Documents) == 0 {
			o.Waiting = part
			if err := json.Unmarshal(part.Fields, &o.fields); err != nil {
				return nil, fmt.Errorf("the fields of the operation: %w", err)
			}
			if len(o.fields.Documents) != 0 {
				return nil, errors.New("the fields of the operation have documents of their own")
			}
		} else {
			o.Documents = append(o.Documents, part.Documents...)
		}
		for _, d := range part.Documents {
			one, err := document(d)
			if err != nil || d.Index != len(o.fields.Documents) {
				return nil, fmt.Errorf("document %d of the operation is malformed", len(o.fields.Documents))
			}
			o.fields.Documents = append(o.fields.Documents, one)
		}
		if len(o.fields.Documents) > what.MaxDocuments {
			return nil, fmt.Errorf("the operation has more than %d documents", what.MaxDocuments)
		}
		if part.More == 0 {
			return &o, o.check(id)
		}
	}
	return nil, fmt.Errorf("the operation arrives in more than %d parts", maxParts)
}

// check computes the digest and the text from the fields, and compares the digest.
func (o *operation) check(id string) (err error) {
	if o.sum, err = o.fields.Sum(); err != nil {
		return err
	}
	if o.sum.String() != o.What || !strings.EqualFold(o.ID, id) {
		return errors.New("the service names another digest than that of the fields of the operation; do not confirm it")
	}
	if o.Shown, err = o.fields.Shown(); err != nil {
		return err
	}
	o.More = 0
	return nil
}

func document(d devmsg.Document) (one what.Document, err error) {
	one = what.Document{Name: d.Name, Size: d.Size, Hash: d.Hash, Way: d.Way}
	if one.Digest, err = hex.DecodeString(d.Digest); err != nil {
		return one, err
	}
	if d.Original != nil {
		one.Original = &what.Original{Size: d.Original.Size}
		one.Original.Digest, err = hex.DecodeString(d.Original.Digest)
	}
	return one, err
}

// explain prints an operation for people, with all documents. lang is the language of the text of the operation,
// "" for that of the program, which the other lines have.
func (o *operation) explain(c *cli.Console, lang string) {
	w := c.Stdout
	lang = cmp.Or(lang, c.Language, "en")
	fmt.Fprint(w, c.Text("operation: %s\nconfirm before: %s\n", cli.Printable(o.ID), time.Unix(o.ConfirmBefore, 0).UTC().Format(time.RFC3339)))
	fmt.Fprint(w, c.Text("application: %s\n", cli.Printable(o.Application)))
	if o.Network != "" {
		fmt.Fprint(w, c.Text("network: %s\n", cli.Printable(o.Network)))
	}
	fmt.Fprint(w, c.Text("asked at: %s\n", time.Unix(o.CreatedAt, 0).UTC().Format(time.RFC3339)))
	for line := range strings.Lines(o.Shown[lang]) {
		fmt.Fprintln(w, cli.Printable(strings.TrimSpace(line)))
	}
	ways, documents := o.fields.InWays()
	for n, way := range ways {
		if len(ways) > 1 {
			fmt.Fprint(w, c.Text("signed as %s:\n", cli.Printable(way.SignatureType)))
		}
		for _, i := range documents[n] {
			d := &o.fields.Documents[i]
			name := d.Name
			if d.Hash != "" {
				name = c.Text("unknown document, hash %s", d.Hash)
			}
			fmt.Fprint(w, c.Text("[%d] %s, %d bytes, %x\n", i, cli.Printable(name), d.Size, []byte(d.Digest)))
		}
	}
	if o.Number {
		fmt.Fprint(w, c.Text("number: the client shows two digits that must be given\n"))
	}
}

type phoneList struct {
	phoneFlags
}

func (v *phoneList) Run(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	list, a, err := v.list(c, p)
	if err != nil {
		return err
	}
	p.State, p.UID = a.State, a.UID
	if err := p.save(); err != nil {
		return err
	}
	if v.JSON {
		return json.NewEncoder(c.Stdout).Encode(list)
	}
	for _, o := range list {
		if o.Action == what.SignIn { // it has neither
			fmt.Fprintf(c.Stdout, "%s %s\n", cli.Printable(o.ID), cli.Printable(o.Action))
			continue
		}
		fmt.Fprint(c.Stdout, c.Text("%s %s, documents: %d, check number: %.8s\n", cli.Printable(o.ID), cli.Printable(o.Action), o.Count, cli.Printable(o.What)))
	}
	return nil
}

// decisionFlags are those of approve and decline.
type decisionFlags struct {
	phoneFlags
	ID   string `arg:"" help:"Identifier of the operation; tamga phone list prints it."`
	Yes  bool   `help:"Do not ask. Default: print the operation and ask, without --json."`
	Lang string `default:"" enum:",ru,en" help:"Language of the text of the operation: ru or en. Default: the language of this program."`
	Keep bool   `help:"Sign the decision and keep it for tamga phone send. Default: send it."`
}

type phoneApprove struct {
	decisionFlags
	Decline []int  `placeholder:"INDEX" help:"Index of a document that is declined, from 0. May be repeated. Default: approve all documents."`
	Number  string `placeholder:"NN" help:"The two digits that the client shows, if it shows any."`
}

func (v *phoneApprove) Run(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	o, err := v.readOperation(c, p, v.ID)
	if err != nil {
		return err
	}
	for _, i := range v.Decline {
		if i < 0 || i >= len(o.fields.Documents) {
			return fmt.Errorf("--decline %d: the operation has %d documents, with indexes from 0", i, len(o.fields.Documents))
		}
	}
	slices.Sort(v.Decline)
	input := bufio.NewReader(io.LimitReader(c.Stdin, 1<<10))
	if v.asks() {
		o.explain(c, v.Lang)
		if o.Number && v.Number == "" {
			if v.Number, err = ask(c, input, c.Text("Number that the client shows: ")); err != nil {
				return err
			}
		}
		if err := sure(c, input, c.Text("Approve %d of %d documents? yes or no: ", len(o.fields.Documents)-len(slices.Compact(slices.Clone(v.Decline))), len(o.fields.Documents))); err != nil {
			return err
		}
	}
	if o.Number && v.Number == "" {
		return errors.New("the client shows two digits; give them with --number, a wrong number declines the operation")
	}
	return v.decision(c, p, devmsg.Confirm, devmsg.Decision{ID: o.ID, What: o.sum.String(), Declined: slices.Compact(v.Decline), Number: v.Number})
}

type phoneDecline struct {
	decisionFlags
	NotMe bool `help:"Also say that another person asks: then no device of yours is asked until you sign in by another method, at most for 24 hours."`
}

func (v *phoneDecline) Run(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	o, err := v.readOperation(c, p, v.ID)
	if err != nil {
		return err
	}
	if v.asks() {
		o.explain(c, v.Lang)
		if err := sure(c, bufio.NewReader(io.LimitReader(c.Stdin, 1<<10)), c.Text("Decline the operation? yes or no: ")); err != nil {
			return err
		}
	}
	return v.decision(c, p, devmsg.Decline, devmsg.Decision{ID: o.ID, What: o.sum.String(), NotMe: v.NotMe})
}

// asks reports whether the user is asked.
func (v decisionFlags) asks() bool { return !v.Yes && !v.JSON }

// sure returns an error unless the user answers yes.
func sure(c *cli.Console, input *bufio.Reader, question string) error {
	answer, err := ask(c, input, question)
	if yes, _ := cli.YesOrNo(answer); err == nil && !yes {
		err = errors.New("nothing was sent; give --yes to send without a question")
	}
	return err
}

// ask asks a question and reads one line.
func ask(c *cli.Console, input *bufio.Reader, question string) (string, error) {
	fmt.Fprint(c.Stderr, question)
	line, err := input.ReadString('\n')
	if err != nil && line == "" {
		return "", errors.New("no answer on standard input; give --yes to send without a question")
	}
	return strings.TrimSpace(line), nil
}

// decision sends a decision and prints the result.
func (v decisionFlags) decision(c *cli.Console, p *phone, kind string, decision devmsg.Decision) error {
	if v.Keep {
		return v.keep(c, p, kind == devmsg.Confirm, decision)
	}
	a, err := v.send(c.Context, p, kind, decision)
	if err != nil {
		return err
	}
	if a.Result == nil {
		return errors.New("the answer of the service has no result")
	}
	if v.JSON {
		return json.NewEncoder(c.Stdout).Encode(a.Result)
	}
	fmt.Fprint(c.Stdout, c.Text("operation %s: %s\n", cli.Printable(a.Result.ID), cli.Printable(a.Result.State)))
	return nil
}
