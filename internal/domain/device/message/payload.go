package message

// Registration is the payload of Register. Without a K-init the device belongs to
// nobody until an operator assigns it.
type Registration struct {
	KInit  *KInitAnswer `json:"kinit,omitempty"`
	Device About        `json:"device"`
}

// KInitAnswer answers the QR code of a K-init.
type KInitAnswer struct {
	Kid   string `json:"kid"`
	Proof []byte `json:"proof"`          // KInitProof
	Code  string `json:"code,omitempty"` // activation code, where the QR code says that one is required
}

// About is what a device tells of itself.
type About struct {
	Name       string `json:"name,omitempty"`
	Type       string `json:"type,omitempty"` // such as android, huawei, ios, cli
	AppVersion string `json:"app_version,omitempty"`
}

// VerificationAnswer is the payload of Verify.
type VerificationAnswer struct {
	Proof []byte `json:"proof"` // VerificationProof
}

// PushAddress is the payload of Push. An empty address takes it away.
type PushAddress struct {
	Address  string `json:"address"`
	OSType   int    `json:"os_type"`
	SystemID string `json:"system_id"`
}

// Answer is what the service says to a device in return for every message.
type Answer struct {
	Kid        string `json:"kid"`
	UID        string `json:"uid"` // whose it is; empty for nobody's
	State      string `json:"state"`
	NotAfter   int64  `json:"not_after"`   // Unix seconds
	Time       int64  `json:"time"`        // of the service, Unix seconds
	PollAfter  int    `json:"poll_after"`  // seconds
	Operations []any  `json:"operations"`  // to be confirmed
	PushListed bool   `json:"push_listed"` // whether the push address is in use
}
