// SPDX-License-Identifier: Apache-2.0

// Package deviceapi serves mobile devices: one address for each type of message. Begin with
// [New] and [API.Routes]. Package device checks the messages and decides about them. Package
// confirm decides about operations to confirm.
// docs/device-protocol.md describes the protocol.
package deviceapi

import (
	"context"
	_ "embed" // for Docs
	"io"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/web/rest"
)

// Docs describes the operations of this surface for people; see
// [tamga/internal/web/rest/openapi].
//
//go:embed operations.txt
var Docs string

// Documents has the documents of operations that wait for their users.
type Documents interface {
	// ConfirmedDocument opens a document of an operation by its index, or its original. The
	// caller checks who may read it, and closes it.
	ConfirmedDocument(ctx context.Context, who audit.Principal, id string, index int, original bool) (Document, error)
}

// Document is an open document.
type Document interface {
	rest.Content
	io.Closer
}

// Deps are what an API works with.
type Deps struct {
	Devices   *device.Service
	Confirm   *confirm.Service
	Documents Documents
	Readable  int64 // largest document that a device may read, in bytes
	// Admit may refuse a call by the address of its sender, because callers have no tokens.
	Admit func(remote string) error
}

// API serves devices.
type API struct {
	devices   *device.Service
	confirm   *confirm.Service
	documents Documents
	readable  int64
	admit     func(remote string) error
}

// New returns the API.
func New(d Deps) *API { return &API{d.Devices, d.Confirm, d.Documents, d.Readable, d.Admit} }

// maxMessage bounds a message, in bytes. The texts in a message have limits of their own.
const maxMessage = 32 << 10

// Routes returns the operations of this surface, below the path of the service.
func (a *API) Routes() []rest.Route {
	var routes []rest.Route
	for _, r := range []rest.Route{
		rest.Handle("POST /v1/"+message.Register, "RegisterDevice", rest.Anyone, a.take((*device.Service).Register)),
		rest.Handle("POST /v1/"+message.Verify, "VerifyDevice", rest.Anyone, a.take((*device.Service).Verify)),
		rest.Handle("POST /v1/"+message.Push, "SetDevicePushAddress", rest.Anyone, a.take((*device.Service).SetPush)),
		rest.Handle("POST /v1/"+message.ServiceKey, "KeepServiceKey", rest.Anyone, a.take((*device.Service).KeepServiceKey)),
		rest.Handle("POST /v1/"+message.Leave, "LeaveDevice", rest.Anyone, a.take((*device.Service).Leave)),
		// Each device polls every few seconds, and a poll changes nothing.
		rest.Handle("POST /v1/"+message.Poll, "PollDevice", rest.Anyone, a.poll).Unaudited(),
		rest.Handle("POST /v1/"+message.Operation, "ReadDeviceOperation", rest.Anyone, a.operation).Unaudited(),
		rest.Handle("POST /v1/"+message.Read, "ReadDeviceDocument", rest.Anyone, a.document),
		rest.Handle("POST /v1/"+message.Confirm, "ConfirmOnDevice", rest.Anyone, a.decision(message.Confirm)),
		rest.Handle("POST /v1/"+message.Decline, "DeclineOnDevice", rest.Anyone, a.decision(message.Decline)),
		rest.Handle("POST /v1/"+message.Deliver, "DeliverFromDevice", rest.Anyone, a.decision(message.Deliver)),
	} {
		routes = append(routes, r.AtMost(maxMessage).Guarded(a.admit))
	}
	return routes
}

type request struct{ Body message.Signed }

func (a *API) take(f func(*device.Service, context.Context, message.Signed) (device.Answer, error)) func(context.Context, request) (message.Answer, error) {
	return func(ctx context.Context, r request) (message.Answer, error) {
		state, err := f(a.devices, ctx, r.Body)
		if err != nil {
			return message.Answer{}, err
		}
		return answered(ctx, state), nil
	}
}

// answered returns the state of a device as an answer. It notes the device for the audit log.
func answered(ctx context.Context, state device.Answer) message.Answer {
	rest.Identified(ctx, state.Who)
	rest.Concerning(ctx, state.Device.Kid)
	d := state.Device
	return message.Answer{
		Kid: d.Kid, UID: d.UserID, State: d.State(), NotAfter: d.NotAfter.Unix(),
		Time: state.Time.Unix(), PollAfter: int(state.PollAfter.Seconds()),
		Operations: []message.Waiting{}, PushListed: d.Push != nil && d.Push.Listed, ServiceKey: state.ServiceKey,
		Successor: state.Successor,
	}
}
