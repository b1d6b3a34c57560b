// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/device"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// WebPushConfig configures messages to browsers.
type WebPushConfig struct {
	Key     []byte // that signs for the push services: P-256, PKCS #8, PEM
	Contact string // of the operator of the installation: mailto: or https:
	Guard   *guard.Guard
	Roots   *x509.CertPool // nil: the roots of the system
	Now     func() time.Time
	// Browser is that of [notify.Environment].
	Browser func(ctx context.Context, to string) (b notify.Browser, found bool, err error)
}

// WebPush sends to the push services of browsers (RFC 8030), encrypted for the browser (RFC 8291) and signed as RFC 8292
// (VAPID) defines it.
//
// A person of the installation chooses the address, so the guard decides about each connection, redirects and proxies
// of the environment are not followed, and of an answer only the status and Retry-After matter.
type WebPush struct {
	service
	config WebPushConfig
	signer jose.Signer
	public []byte // point of the key, uncompressed
	lanes  lanes
}

const (
	webPushTime   = 10 * time.Second // of one request
	webPushFast   = 3 * time.Second  // of a service that answers well
	webPushLife   = 24 * time.Hour   // of a message at a service, at most
	vapidLife     = 12 * time.Hour   // RFC 8292 allows a day
	webPushRecord = 4096             // bytes; a message is one record
	// webPushMost is the longest plaintext that every service takes: RFC 8030, 7.2 has 4096 bytes with all that RFC 8188 adds.
	webPushMost = 3993
	webPushPad  = 256 // bytes; lengths are multiples of it
)

// NewWebPush reads the key.
func NewWebPush(c WebPushConfig) (*WebPush, error) {
	var key any
	if block, _ := pem.Decode(c.Key); block != nil {
		key, _ = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("push: web: key: want a P-256 key as PKCS #8 (PEM); make one with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256")
	}
	public, err := private.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("push: web: key: %w", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, fmt.Errorf("push: web: %w", err)
	}
	return &WebPush{service: service{"the push service of the browser", &http.Client{
		Timeout: webPushTime,
		Transport: &http.Transport{
			DialContext: c.Guard.Dial, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxIdleConns: 32, MaxIdleConnsPerHost: 4,
			TLSClientConfig: &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12}, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, config: c, signer: signer, public: public}, nil
}

// parse refuses an address that can be refused without resolving it. The fault is invalid_parameters.
func (w *WebPush) parse(address string) (*url.URL, error) {
	u, err := w.config.Guard.Parse(address)
	if err == nil && u.Scheme != "https" {
		err = errors.New("want https")
	}
	if err != nil {
		return nil, fault.New(fault.InvalidParameters, "endpoint: "+err.Error()+"; a push service has an https address on the public internet, or in messages.push.web.allow_networks").With(err)
	}
	return u, nil
}

// webPushContent is what the service worker of the pages gets.
type webPushContent struct {
	ID    string `json:"id"` // of the message, so that a repetition is shown once
	Title string `json:"title"`
	Text  string `json:"text"`
	Path  string `json:"path,omitempty"` // of the page to open
}

// Send implements Sender.
func (w *WebPush) Send(ctx context.Context, _ device.PushTarget, title string, m notify.Message) error {
	b, found, err := w.config.Browser(ctx, m.To)
	if err != nil {
		return err
	}
	if !found {
		return notify.Permanent(errors.New("push: web: the browser was removed"))
	}
	u, err := w.parse(b.Address)
	if err != nil {
		return notify.Permanent(errors.New("push: web: the address of the browser is not allowed any more"))
	}
	content := webPushContent{m.ID, title, m.Text, m.Link}
	plain, err := json.Marshal(content)
	if err == nil && len(plain) > webPushMost {
		content.Text = "" // the page has it
		plain, err = json.Marshal(content)
	}
	if err != nil {
		return err
	}
	body, err := encryptFor(b, plain)
	if err != nil {
		return notify.Permanent(err)
	}
	origin := u.Scheme + "://" + u.Host
	now := w.config.Now()
	token, err := jwt.Signed(w.signer).Claims(map[string]any{"aud": origin, "exp": now.Add(vapidLife).Unix(), "sub": w.config.Contact}).Serialize()
	if err != nil {
		return fmt.Errorf("push: web: %w", err)
	}
	life := webPushLife
	if !m.Expires.IsZero() {
		life = min(life, max(0, m.Expires.Sub(now)))
	}
	leave, ok := w.lanes.enter(origin)
	if !ok {
		return errors.New("push: web: too many services that are slow or new are asked at this moment")
	}
	began := time.Now()
	response, _, err := w.post(ctx, u.String(), http.Header{
		"Authorization":    {"vapid t=" + token + ", k=" + base64.RawURLEncoding.EncodeToString(w.public)},
		"Content-Encoding": {"aes128gcm"}, "Content-Type": {"application/octet-stream"},
		"Ttl": {strconv.Itoa(int(life / time.Second))}, "Urgency": {"high"}, "Topic": {topic(m.ID)},
	}, body)
	leave(err == nil && time.Since(began) < webPushFast)
	var refused *guard.Refused
	switch {
	case errors.As(err, &refused):
		return notify.Permanent(errors.New("push: web: " + refused.Text))
	case err != nil:
		return err
	case response.StatusCode/100 == 2:
		return nil
	case response.StatusCode == http.StatusNotFound, response.StatusCode == http.StatusGone:
		return gone(w.name, strconv.Itoa(response.StatusCode))
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden, passing(response.StatusCode):
		return w.later(response, "", now) // an administrator can put the right key back
	}
	return notify.Permanent(w.refusal(response.StatusCode, ""))
}

// topic returns the identifier of a message as RFC 8030, 5.4 wants it: a service keeps one message of a topic, so it does not
// keep a repetition beside the first attempt.
func topic(id string) string {
	if u, err := uuid.Parse(id); err == nil {
		return base64.RawURLEncoding.EncodeToString(u[:])
	}
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// encryptFor encrypts a message for a browser, with a key of its own.
func encryptFor(b notify.Browser, plain []byte) ([]byte, error) {
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	var salt [16]byte
	rand.Read(salt[:])
	padded := make([]byte, min((len(plain)/webPushPad+1)*webPushPad, webPushMost+1))
	copy(padded, plain)
	padded[len(plain)] = lastRecord
	return encryptWith(b, own, salt[:], padded)
}

// lastRecord ends the plaintext of the last record and is followed by padding (RFC 8188, 2).
const lastRecord = 2

// encryptWith is RFC 8291, 3.4. padded is the plaintext with its end.
func encryptWith(b notify.Browser, own *ecdh.PrivateKey, salt, padded []byte) ([]byte, error) {
	theirs, err := ecdh.P256().NewPublicKey(b.Public)
	if err != nil {
		return nil, errors.New("push: web: the key of the browser is no point of P-256")
	}
	shared, err := own.ECDH(theirs)
	if err != nil {
		return nil, fmt.Errorf("push: web: %w", err)
	}
	public := own.PublicKey().Bytes()
	key, err := hkdf.Key(sha256.New, shared, b.Secret, "WebPush: info\x00"+string(b.Public)+string(public), 32)
	if err != nil {
		return nil, err
	}
	content, err := hkdf.Key(sha256.New, key, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, key, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(content)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, 16+4+1+len(public)+len(padded)+aead.Overhead()), salt...)
	out = binary.BigEndian.AppendUint32(out, webPushRecord)
	out = append(append(out, byte(len(public))), public...)
	return aead.Seal(out, nonce, padded, nil), nil
}

// lanes keep services that do not answer from those that do: a person who names a slow address occupies one sender at
// a time.
type lanes struct {
	mu    sync.Mutex
	good  map[string]bool // origins whose last answer was fast
	other int             // requests under way to all others
}

const (
	mostGood  = 1000
	mostOther = 1
)

// enter reports whether a request to an origin may begin. leave ends it.
func (l *lanes) enter(origin string) (leave func(fast bool), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	good := l.good[origin]
	if !good {
		if l.other >= mostOther {
			return nil, false
		}
		l.other++
	}
	return func(fast bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !good {
			l.other--
		}
		switch {
		case !fast:
			delete(l.good, origin)
		case l.good == nil || len(l.good) >= mostGood:
			l.good = map[string]bool{origin: true}
		default:
			l.good[origin] = true
		}
	}, true
}

// NewWebPushKey draws a key, as WebPushConfig.Key has it.
func NewWebPushKey(random io.Reader) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
