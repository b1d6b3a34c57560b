// Package console owns the pages that people look at with a browser. Today that is
// one: the messages that a server for trying out captured instead of sending.
package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"strings"
	"time"

	"tamga/internal/web/rest"
)

// Docs describes the operations of this door for people; see [tamga/internal/web/rest/openapi].
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

// Captured reads the captured messages, the newest last. What was ordered before it
// was asked is among them.
type Captured func(ctx context.Context) ([]Message, error)

// MessagesPath is where the captured messages are.
const MessagesPath = "/captured-messages"

// API serves the pages.
type API struct{ captured Captured }

// New returns the API.
func New(c Captured) *API { return &API{captured: c} }

// Routes are the pages. They show codes and passwords to whoever reaches them: that
// is what they are for, and why they are there only where messages are captured.
func (a *API) Routes() []rest.Route {
	return []rest.Route{
		rest.Handle("GET "+MessagesPath, "CapturedMessages", rest.Anyone, a.messages).Unjournaled().Answering([]Message{}, rest.Page{}),
	}
}

//go:embed style.css
var style string

//go:embed messages.html
var messagesText string

var messagesPage = template.Must(template.New("messages").Parse(messagesText))

// stylePolicy lets the page have its own style and nothing else: no scripts, no
// images, nothing from other places, whatever a message says.
var stylePolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

// messages answers programs with JSON and people with a page.
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
