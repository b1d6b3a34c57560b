// SPDX-License-Identifier: Apache-2.0

package deviceapi

import (
	"context"
	"encoding/hex"
	"encoding/json"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// Documents in one answer: of each operation in a poll, and of one operation.
const (
	pollDocuments = 20
	pageDocuments = 200
)

// poll returns the operations that wait for the device.
func (a *API) poll(ctx context.Context, r request) (message.Answer, error) {
	state, err := a.devices.Poll(ctx, r.Body)
	if err != nil {
		return message.Answer{}, err
	}
	answer := answered(ctx, state)
	if !state.Device.Active(state.Time) {
		return answer, nil
	}
	list, next, err := a.confirm.ListForDevice(ctx, state.Device.UserID, state.Device.Kid, state.Device.Describes, state.After)
	if err != nil {
		return message.Answer{}, err
	}
	for i := range list {
		answer.Operations = append(answer.Operations, a.describe(&list[i], 0, pollDocuments))
	}
	answer.Next = next
	return answer, nil
}

// operation returns one operation with its fields and a part of its documents.
func (a *API) operation(ctx context.Context, r request) (message.Answer, error) {
	state, asked, err := a.devices.Operation(ctx, r.Body)
	if err != nil {
		return message.Answer{}, err
	}
	answer := answered(ctx, state)
	if !state.Device.Active(state.Time) {
		return message.Answer{}, notVerified()
	}
	w, err := a.confirm.FindForDevice(ctx, state.Device.UserID, state.Device.Kid, state.Device.Describes, asked.ID)
	if err != nil {
		return message.Answer{}, err
	}
	if asked.From < 0 || asked.From > 0 && asked.From >= w.Record.Documents {
		return message.Answer{}, fault.Newf(fault.InvalidParameters, "from: the operation has %d documents, want the index of one of them", w.Record.Documents)
	}
	one := a.describe(&w, asked.From, pageDocuments)
	fields := w.Content.Fields
	fields.Documents = nil
	if one.Fields, err = json.Marshal(fields); err != nil {
		return message.Answer{}, err
	}
	answer.Operations = append(answer.Operations, one)
	return answer, nil
}

// document returns the bytes of a document of an operation that waits for the device.
func (a *API) document(ctx context.Context, r request) (rest.File, error) {
	state, asked, err := a.devices.Document(ctx, r.Body)
	if err != nil {
		return rest.File{}, err
	}
	answered(ctx, state)
	if !state.Device.Active(state.Time) {
		return rest.File{}, notVerified()
	}
	w, err := a.confirm.FindForDevice(ctx, state.Device.UserID, state.Device.Kid, state.Device.Describes, asked.ID)
	if err != nil {
		return rest.File{}, err
	}
	documents := w.Content.Fields.Documents
	if asked.Index < 0 || asked.Index >= len(documents) {
		return rest.File{}, fault.Newf(fault.InvalidParameters, "index: the operation has %d documents, want the index of one of them", len(documents))
	}
	size := documents[asked.Index].Size
	if asked.Original && documents[asked.Index].Original != nil {
		size = documents[asked.Index].Original.Size
	}
	if size > a.readable {
		return rest.File{}, fault.Newf(fault.InvalidParameters, "index: the document has %d bytes, and a device may read documents of at most %d", size, a.readable)
	}
	d, err := a.documents.ConfirmedDocument(ctx, state.Who, asked.ID, asked.Index, asked.Original)
	if err != nil {
		return rest.File{}, err
	}
	rest.Afterwards(ctx, d)
	return rest.File{Content: d}, nil
}

func notVerified() error {
	return fault.New(fault.AccessDenied, "the device is not verified: scan the verification code of the operator first")
}

// decision takes messages of one type that end a challenge.
func (a *API) decision(kind string) func(context.Context, request) (message.Answer, error) {
	return func(ctx context.Context, r request) (message.Answer, error) {
		if m, err := message.Parse(r.Body); err == nil && m.Type != kind {
			return message.Answer{}, fault.Newf(fault.InvalidParameters, "typ: want %s at this address", kind)
		}
		signed, err := json.Marshal(r.Body)
		if err != nil {
			return message.Answer{}, err
		}
		record, err := a.confirm.Approve(ctx, signed)
		if err != nil {
			return message.Answer{}, err
		}
		state, err := a.devices.State(ctx, record.Address)
		if err != nil {
			return message.Answer{}, err
		}
		answer := answered(ctx, state)
		answer.Result = &message.Result{ID: record.ID, State: string(record.State), Declined: record.Declined}
		return answer, nil
	}
}

// describe returns an operation with at most most of its documents, from an index.
func (a *API) describe(w *confirm.Waiting, from, most int) message.Waiting {
	r := &w.Record
	o := message.Waiting{
		ID: r.ID, Action: r.Action, What: r.What.String(), Shown: w.Content.Shown, Number: r.Number != "",
		Application: r.ClientID, Network: r.Origin,
		CreatedAt: r.CreatedAt.Unix(), ConfirmBefore: r.ConfirmBefore.Unix(), Count: r.Documents, Documents: []message.Document{},
	}
	documents := w.Content.Fields.Documents
	end := min(from+most, len(documents))
	for i, d := range documents[from:end] {
		o.Documents = append(o.Documents, a.describeDocument(w, from+i, d))
	}
	if end < len(documents) {
		o.More = end
	}
	return o
}

// documentPath is where Read gets documents, below the service.
const documentPath = "/v1/" + message.Read

func (a *API) describeDocument(w *confirm.Waiting, index int, d what.Document) message.Document {
	path := func(size int64) string {
		if w.Record.Purpose != confirm.ForOperation || d.Hash != "" || size > a.readable {
			return ""
		}
		return documentPath
	}
	m := message.Document{Index: index, Name: d.Name, Size: d.Size, Digest: hex.EncodeToString(d.Digest), Hash: d.Hash, Path: path(d.Size), Way: d.Way}
	if d.Original != nil {
		m.Original = &message.Original{Size: d.Original.Size, Digest: hex.EncodeToString(d.Original.Digest), Path: path(d.Original.Size)}
	}
	return m
}
