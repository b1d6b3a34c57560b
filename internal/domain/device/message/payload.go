// SPDX-License-Identifier: Apache-2.0

package message

// Registration is the payload of Register. Without a K-init the device has no user until
// an operator assigns it.
type Registration struct {
	KInit  *KInitAnswer `json:"kinit,omitempty"`
	Device About        `json:"device"`
}

// KInitAnswer answers the QR code of a K-init.
type KInitAnswer struct {
	Kid   string `json:"kid"`
	Proof []byte `json:"proof"`          // KInitProof
	Code  string `json:"code,omitempty"` // activation code, if the QR code requires one
}

// About is what a device reports about itself.
type About struct {
	Name       string `json:"name,omitempty"`
	Type       string `json:"type,omitempty"` // such as android, huawei, ios, cli
	AppVersion string `json:"app_version,omitempty"`
}

// VerificationAnswer is the payload of Verify.
type VerificationAnswer struct {
	Proof []byte `json:"proof"` // VerificationProof
}

// PushAddress is the payload of Push. An empty address removes it.
type PushAddress struct {
	Address  string `json:"address"`
	OSType   int    `json:"os_type"`
	SystemID string `json:"system_id"`
}

// Answer is the answer of the service to each message.
type Answer struct {
	Kid        string `json:"kid"`
	UID        string `json:"uid"` // user of the device; empty for none
	State      string `json:"state"`
	NotAfter   int64  `json:"not_after"`   // Unix seconds
	Time       int64  `json:"time"`        // of the service, Unix seconds
	PollAfter  int    `json:"poll_after"`  // seconds
	Operations []any  `json:"operations"`  // to be confirmed
	PushListed bool   `json:"push_listed"` // whether the push address is in use
}
