// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/waiting"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Waits tells pages of changes; see [waiting.Hub].
type Waits interface {
	State(ctx context.Context, t waiting.Topic) (string, error)
	Follow(ctx context.Context, t waiting.Topic, send func(state string) error) error
}

// follow sends the state of what a page waits for whenever it changes.
func (a *API) follow(ctx context.Context, r struct {
	For string `query:"for"`
	ID  string `query:"id"`
}) (rest.Events, error) {
	kind := waiting.Kind(r.For)
	switch kind {
	case waiting.Confirmation, waiting.Operation, waiting.Devices, waiting.Requests, waiting.Office:
	default:
		return rest.Events{}, fault.New(fault.InvalidParameters, "for: this cannot be waited for")
	}
	if len(r.ID) > 64 {
		return rest.Events{}, fault.New(fault.InvalidParameters, "id: want the identifier of an operation")
	}
	topic := view.TopicOf(rest.Caller(ctx).UserID, kind, r.ID)
	return rest.Events{Follow: func(send func(string) error) error { return a.Waits.Follow(ctx, topic, send) }}, nil
}
