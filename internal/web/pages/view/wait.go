// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"net/url"

	"tamga/internal/domain/waiting"
	"tamga/internal/web/rest"
)

// WaitingPath is where the states of what people wait for are sent.
const WaitingPath = "/waiting"

// Wait is what a page waits for, for the template "wait". A page that waits has [WaitScript].
type Wait struct {
	Address string // of the events; "": nothing
	State   string // when the page was made
	Then    string // page to go on at; "": the same
}

// WaitFor begins to wait. It is called before the page reads what it shows, so that no change is missed. id is "" for what
// is of the caller.
func WaitFor(ctx context.Context, kind waiting.Kind, id string) (Wait, error) {
	who, v := rest.Caller(ctx), VisitorOf(ctx)
	if v.State == nil || who.UserID == "" {
		return Wait{}, nil
	}
	topic := TopicOf(who.UserID, kind, id)
	state, err := v.State(ctx, topic)
	return Wait{Address: WaitingPath + "?" + url.Values{"for": {string(kind)}, "id": {id}}.Encode(), State: state}, err
}

// TopicOf returns a topic of a user.
func TopicOf(userID string, kind waiting.Kind, id string) waiting.Topic {
	if kind == waiting.Devices || kind == waiting.Requests || kind == waiting.Office {
		id = userID
	}
	return waiting.Topic{Kind: kind, ID: id, UserID: userID}
}
