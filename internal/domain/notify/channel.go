// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"strings"
)

// Channel is a way to reach a person. The values are the names of notifiers on
// the wire.
type Channel string

// The channels that code names. Channels has all of them.
const (
	Email   Channel = "Email"
	SMS     Channel = "SMS"
	Push    Channel = "Push"
	Webhook Channel = "Webhook"
	// Callback sends requests to the addresses that clients name; see Service.Call.
	Callback Channel = "Callback"
)

// RecipientKind says what a channel sends to.
type RecipientKind int

// The kinds of recipients.
const (
	ToAddresses RecipientKind = iota + 1 // e-mail addresses of users
	ToNumbers                            // phone numbers of users
	ToDevices                            // mobile devices of users
	ToSystems                            // systems that listen to events or wait for an answer; users do not choose this channel
)

// ChannelInfo describes a channel.
type ChannelInfo struct {
	Channel Channel
	To      RecipientKind
	Part    string // part of a template that is the text; "": the channel has no text
	Subject bool   // whether the text has a subject line
	// Budget is the default of the settings messages.budgets.NAME. A channel whose default is the
	// zero Budget has no such settings and no bounds.
	Budget Budget
}

// Channels returns all channels. A new channel is one row here. Notification policies, captured
// messages, budgets, the check of templates and the help of commands follow from the rows.
func Channels() []ChannelInfo {
	return []ChannelInfo{
		{Channel: Email, To: ToAddresses, Part: "email", Subject: true, Budget: Budget{Recipient: 20, Actor: 10_000}},
		{Channel: SMS, To: ToNumbers, Part: "sms", Budget: Budget{Recipient: 10, Actor: 10_000, Prefix: 1_000}},
		{Channel: Push, To: ToDevices, Part: "sms"},
		{Channel: Webhook, To: ToSystems},
		{Channel: Callback, To: ToSystems},
	}
}

// Info returns the row of a channel. A channel that is in no row has only its name.
func (c Channel) Info() ChannelInfo {
	for _, info := range Channels() {
		if info.Channel == c {
			return info
		}
	}
	return ChannelInfo{Channel: c}
}

// ForUsers returns the channels that users choose from.
func ForUsers() []ChannelInfo {
	return slices.DeleteFunc(Channels(), func(info ChannelInfo) bool { return info.To == ToSystems })
}

// NamesForUsers returns the names of ForUsers as a list for people.
func NamesForUsers() string {
	var names []string
	for _, info := range ForUsers() {
		names = append(names, string(info.Channel))
	}
	return strings.Join(names, ", ")
}
