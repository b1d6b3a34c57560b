// SPDX-License-Identifier: Apache-2.0

// Package console serves the pages that people read in a browser. Today it has one: the
// messages that a trial server captured instead of sending. Begin with [New] and
// [API.Routes]. The package sends and stores no messages, and its pages have no sign-in.
package console

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"strings"
	"time"

	"tamga/internal/web/rest"
)

// Docs describes the operations of this surface for people; see
// [tamga/internal/web/rest/openapi].
//
//go:embed operations.txt
var Docs string

// Message is a captured message.
type Message struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Channel string    `json:"channel"`
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
}

// Captured returns the captured messages, the newest last. It includes all messages ordered
// before the call.
type Captured func(ctx context.Context) ([]Message, error)

// MessagesPath is the address of the page with the captured messages.
const MessagesPath = "/captured-messages"

// API serves the pages.
type API struct{ captured Captured }

// New returns the API.
func New(c Captured) *API { return &API{captured: c} }

// Routes returns the pages. They show codes and passwords to every client that reaches
// them. That is their purpose, so they exist only where messages are captured.
func (a *API) Routes() []rest.Route {
	return []rest.Route{
		rest.Handle("GET "+MessagesPath, "CapturedMessages", rest.Anyone, a.messages).Unaudited().Answering([]Message{}, rest.Page{}),
	}
}

//go:embed style.css
var style string

//go:embed messages.html
var messagesText string

var messagesPage = template.Must(template.New("messages").Parse(messagesText))

// stylePolicy allows the page its own style and nothing else: no scripts, no images,
// nothing from other hosts, with any text in a message.
var stylePolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; style-src " + rest.ContentHash(style)

// messages answers programs with JSON and browsers with a page.
func (a *API) messages(ctx context.Context, r struct {
	Accept string `header:"Accept"`
}) (any, error) {
	list, err := a.captured(ctx)
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = []Message{}
	}
	if strings.Contains(r.Accept, "application/json") {
		return list, nil
	}
	var page bytes.Buffer
	err = messagesPage.Execute(&page, struct {
		Style    template.CSS
		Messages []Message
	}{template.CSS(style), list})
	return rest.Page{Content: bytes.NewReader(page.Bytes()), Policy: stylePolicy}, err
}
