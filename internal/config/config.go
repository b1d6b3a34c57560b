// SPDX-License-Identifier: Apache-2.0

// Package config is the configuration of the program: one struct with tags for defaults and checks,
// and the checks that relate several settings.
//
// Begin with Load, which reads a file and the settings of the command line, and Validate, which
// reports every fault. Dev is the configuration of serve --dev. The package opens nothing that a
// setting names: no secret, no socket, no database.
package config

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/vault"
	"tamga/internal/setting"
	"tamga/internal/web/rest"
)

// Config is the whole configuration of a process, one YAML file. A setting is one field. The tags
// of package setting define its default and its check. docs/config.md is printed from the comments
// and the tags, so a comment is the manual of its setting. A comment that ends with "Default:
// TEXT." says what an empty value means. Secrets are paths of files, never values. Only the
// service's user may have access to a file of secrets (mode 0600). Relative paths are relative to
// the directory of the configuration file.
type Config struct {
	// Address that the server listens on, HOST:PORT. Port 0 selects a free port.
	Listen string `yaml:"listen" default:"127.0.0.1:8080"`
	// Address of the server for people and in certificates. Links in issued certificates start with
	// it for ever. Required if `listen` is on every address (`0.0.0.0`, `[::]`, no host). Default:
	// `http://LISTEN`, with `tls` `https://LISTEN`.
	PublicURL string `yaml:"public_url" rule:"url"`
	// TLS with Go's own cipher suites.
	TLS struct {
		// Certificate chain (PEM) for TLS. Without chain and key: plain HTTP, for loopback or
		// behind a proxy.
		CertificateFile string `yaml:"certificate_file"`
		// Key (PEM) of the certificate.
		KeyFile string `yaml:"key_file"`
		// Whether the server requests a certificate (RSA, ECDSA) from clients, which may identify
		// an operator instead of a token. Browsers ask their users about it.
		ClientCertificates bool `yaml:"client_certificates"`
	} `yaml:"tls"`
	// Address (HOST:PORT) for `/metrics`, `/healthz` and `/readyz` in plain HTTP, for the network of the monitoring. With it the
	// server does not answer `/metrics` at `listen`. Default: none.
	MetricsListen string `yaml:"metrics_listen"`
	// Addresses and networks (`10.0.0.0/8`) of proxies in front of the server. Their information
	// about the address of a client is trusted: `X-Forwarded-For`, `Forwarded`, and the PROXY
	// protocol. They must overwrite or remove what clients send ([below](#behind-a-proxy)).
	TrustedProxies []string `yaml:"trusted_proxies"`
	// Whether `trusted_proxies` begin each connection with a header of the PROXY protocol,
	// version 1 or 2. If true, they must.
	ProxyProtocol bool `yaml:"proxy_protocol"`
	// GOST-TLS through HAProxy with gost-engine in front of the server, set up by "tamga gost-tls
	// init".
	GOSTTLS struct {
		// Unix socket the GOST-TLS front end connects to ([below](#gost-tls-front-end)). The program
		// creates it. Others must not be able to write to its directory. Without it there is no
		// GOST-TLS.
		Socket string `yaml:"socket"`
		// User of the front end process, a name or a number. Only connections of this user to the
		// socket are accepted. Default: the user of the server.
		FrontEndUser string `yaml:"front_end_user"`
	} `yaml:"gost_tls"`
	// Which certificates may identify operators. Each one must also be registered: "tamga operator
	// certificate".
	OperatorCertificates struct {
		// Whether certificates of the built-in authority may identify operators. Each certificate
		// must also be registered (`tamga operator certificate`).
		BuiltIn bool `yaml:"built_in" default:"true"`
		// Certificates (PEM) of further authorities. Self-issued ones are trusted, the others help
		// to build paths.
		AuthoritiesFile string `yaml:"authorities_file"`
		// Current revocation lists of these authorities (DER or PEM). They are read at each check,
		// so replace a file as a whole. A certificate that no current list covers is refused.
		RevocationFiles []string `yaml:"revocation_files"`
	} `yaml:"operator_certificates"`
	// Directory for documents of running requests. The program creates it with mode 0700. Its disk
	// must have space for the largest requests at once. Files there are unlinked while open, so
	// nothing remains.
	SpoolDir string `yaml:"spool_dir" default:"spool" rule:"required" want:"a directory for documents of running requests"`
	// Directory for stored documents and those prepared for signing in two steps. All processes
	// with the same database share it. The program creates it with mode 0700.
	BlobDir string `yaml:"blob_dir" default:"blobs"`
	// Bucket for documents instead of `blob_dir`.
	Bucket Bucket `yaml:"bucket"`
	// Stored documents.
	Documents Documents `yaml:"documents"`
	// Requests of v2.
	Operations Operations `yaml:"operations"`
	// Decryption of messages.
	Decryption struct {
		// Whether certificates that are expired, revoked or on hold open messages, as far as their keys
		// are still kept. Otherwise what was encrypted for them before stays closed.
		EndedCertificates bool `yaml:"ended_certificates" default:"true"`
	} `yaml:"decryption"`
	// Answers kept for requests with an Idempotency-Key.
	Repetitions Repetitions `yaml:"repetitions"`
	// `sqlite:PATH` (created if missing) or `postgres://USER@HOST:PORT/NAME`
	// ([below](#postgresql)).
	Database string `yaml:"database" default:"sqlite:tamga.db"`
	// File with the PostgreSQL password. Not needed if the URL or the server works without one.
	DatabasePasswordFile string `yaml:"database_password_file"`
	// Connections of this process to the database: all of them on PostgreSQL, those that read on
	// SQLite. At least 2. Keep the sum over all processes below `max_connections` of the server
	// ([reasons](operations.md#when-the-database-or-the-bucket-is-away)). With 8, twelve processes
	// fit into the 100 connections of PostgreSQL's own default.
	DatabaseConnections int `yaml:"database_connections" default:"8" min:"2"`
	// How long a request waits for a PostgreSQL server that does not answer before it gets 503
	// ([what clients must expect](cluster.md#a-database-that-is-silent)). A statement is ended a second
	// earlier, so a search that takes longer fails. Clients and balancers must wait longer than this.
	DatabaseWait time.Duration `yaml:"database_wait" default:"9s" min:"5s" max:"1m"`
	// How far the clock of this machine may be from the clock of a PostgreSQL server. All processes
	// use the server's time, so a wrong clock does no harm. But a process with a clock that is further
	// off is not ready: `/readyz` names the part `clock`.
	ClockOffset time.Duration `yaml:"clock_offset" default:"2s" min:"100ms"`
	// Master keys that seal private keys at rest. A running server reads them again when the file of
	// its configuration changes ([how to replace a key](operations.md#master-keys)).
	MasterKeys struct {
		// Name of the master key that seals. A server uses a new one as soon as all running servers
		// have it. Default: none, required.
		Active string `yaml:"active"`
		// Map from the name of a master key to a file with 32 bytes in hexadecimal. Each key opens
		// what it has sealed. Default: none, required.
		Files map[string]string `yaml:"files"`
	} `yaml:"master_keys"`
	// Private keys of users and of the built-in authority.
	Keys struct {
		// Holder of new private keys. `software` stores them in the database, sealed by the master key
		// and by the PIN of a key if it has one. Each key is stored with the name of its holder and stays
		// there when the setting changes.
		Holder string `yaml:"holder" default:"software"`
		// Holder of new keys of the built-in authority. Default: as `holder`.
		AuthorityHolder string `yaml:"authority_holder"`
		// Rules that send new keys of users to another holder, by suite and by group. The first one that
		// fits decides.
		Rules []KeyRule `yaml:"rules"`
		// Holders to open that no setting above names, for the keys that they have.
		OtherHolders []string `yaml:"other_holders"`
	} `yaml:"keys"`
	// First path element of the signing service; `/api` and `/rest/api` follow.
	SignServer string `yaml:"sign_server" default:"/SignServer" rule:"path"`
	// First path element of the identity provider.
	IDP string `yaml:"idp" default:"/STS" rule:"path"`
	// Path of the verification service. Its calls are below `/api` and `/rest/api`.
	SVS string `yaml:"svs" default:"/SVS" rule:"path"`
	// Path of the document store; `/api` and `/rest/api` follow.
	DocumentStore string `yaml:"document_store" default:"/DocumentStore" rule:"path"`
	// Name of the resource that tokens are issued for.
	Resource string `yaml:"resource" default:"urn:cryptopro:dss:signserver:signserver" rule:"required" want:"the resource that tokens are issued for"`
	// Other spellings of `resource` that clients use. Letter case never matters.
	ResourceAliases []string `yaml:"resource_aliases"`
	// Applications that may request tokens.
	Clients []Client `yaml:"clients"`
	// Other identity providers that users may sign in at by OpenID Connect or SAML
	// ([below](#other-identity-providers)).
	External []External `yaml:"external"`
	// Directories of the organization (LDAP, Active Directory) whose people are users
	// ([how it works](users.md#directories)).
	Directories []Directory `yaml:"directories"`
	// Validity of tokens and of the keys that sign them.
	Tokens struct {
		// Validity of an access token. Existing clients expect the default.
		AccessLife time.Duration `yaml:"access_life" default:"5m" min:"1s"`
		// Validity of an authorization code, at most 10m.
		CodeLife time.Duration `yaml:"code_life" default:"1m" min:"1s" max:"10m"`
		// How long a user stays signed in with `offline_access`, however often the tokens are
		// refreshed.
		RefreshLife time.Duration `yaml:"refresh_life" default:"720h"`
		// How long a new signing key is published before it signs, and an old one is kept after
		// that (`tamga key rotate-tokens`).
		KeyOverlap time.Duration `yaml:"key_overlap" default:"1h" min:"0s"`
	} `yaml:"tokens"`
	// Limits of password attempts.
	Passwords struct {
		// Wrong passwords within `passwords.window` after which the user is locked out. Those of untrusted and
		// of trusted callers (see `passwords.reserved`) are counted separately and lock out their kind alone.
		Attempts int `yaml:"attempts" default:"10" above:"0"`
		// Time in which wrong passwords are counted.
		Window time.Duration `yaml:"window" default:"15m" above:"0s"`
		// How long the user is locked out.
		LockOut time.Duration `yaml:"lock_out" default:"15m" above:"0s"`
		// Part of `argon2.parallel` that is reserved for trusted callers: clients that proved their
		// secret, and addresses that a user signed in from by password
		// ([why](operations.md#many-password-attempts)). One derivation is always left for others.
		Reserved float64 `yaml:"reserved" default:"0.5" min:"0" max:"1"`
		// Attempts of all other callers together that may wait for a derivation. Above it 429 with
		// Retry-After.
		Waiting int `yaml:"waiting" default:"64" above:"0"`
		// Attempts of other callers from one address that may wait for a derivation. Above it 429
		// with Retry-After.
		WaitingAddress int `yaml:"waiting_address" default:"8" above:"0"`
		// How long an attempt may wait. After that 429 with Retry-After.
		Wait time.Duration `yaml:"wait" default:"700ms" above:"0s"`
		// Attempts of other callers per second from one address, or one /64 of IPv6, in the long
		// run. Trusted addresses have ten times as many, clients with a secret no limit.
		AddressPerSecond float64 `yaml:"address_per_second" default:"1" above:"0"`
		// Attempts of other callers from one address at once. Trusted addresses have ten times as
		// many, clients with a secret no limit.
		AddressAtOnce int `yaml:"address_at_once" default:"30" above:"0"`
		// Attempts of other callers per minute at one login, in the long run. The login counts as
		// it was typed, even if it does not exist. Trusted callers have ten times as many.
		LoginPerMinute float64 `yaml:"login_per_minute" default:"6" above:"0"`
		// Attempts of other callers at one login at once. Trusted callers have ten times as many.
		LoginAtOnce int `yaml:"login_at_once" default:"10" above:"0"`
		// Number of addresses that are remembered after a correct password. They are in memory, so
		// a restart forgets them.
		KnownAddresses int `yaml:"known_addresses" default:"50000" above:"0"`
		// How long an address is remembered after the last correct password.
		KnownFor time.Duration `yaml:"known_for" default:"168h" above:"0s"`
	} `yaml:"passwords"`
	// Names and contacts of users.
	Users Users `yaml:"users"`
	// Messages to users.
	Messages Messages `yaml:"messages"`
	// One-time passwords of hardware tokens and apps.
	Oath Oath `yaml:"oath"`
	// Mobile devices of users.
	Devices Devices `yaml:"devices"`
	// Confirmations of operations and second steps of sign-ins.
	Confirmation Confirmation `yaml:"confirmation"`
	// Sign-ins of programs.
	SignIn SignIn `yaml:"signin"`
	// Policies of users without their own policy and without one of their group ("tamga policy").
	UserPolicies Policies `yaml:"user_policies"`
	// Systems that receive events.
	Webhooks Webhooks `yaml:"webhooks"`
	// PINs of keys.
	PIN struct {
		// Wrong PINs in a row before a key is blocked.
		Attempts int `yaml:"attempts" default:"10" above:"0"`
		// Whether new keys have a PIN: `Required`, `Forbid` or `Allow`. Existing keys stay as they
		// are.
		Mode string `yaml:"mode" default:"Allow" oneof:"Required Forbid Allow"`
		// Fewest characters of a new PIN, 1 to 64. Existing PINs still open their keys.
		MinLength int `yaml:"min_length" default:"6" min:"1" max:"64"`
		// Whether a new PIN may repeat one character or count up or down, such as `111111` and
		// `123456`. Existing PINs still open their keys.
		AllowSimple bool `yaml:"allow_simple"`
		// How long a process recognizes a right PIN without deriving its key again, for the same
		// access token. The derived keys stay in locked memory (32 KiB; `LimitMEMLOCK`). Without it,
		// and with `0s`, each use of a key takes a derivation.
		Remember time.Duration `yaml:"remember" default:"1m" min:"0s" max:"10m"`
	} `yaml:"pin"`
	// Cost of one derivation from a password or a PIN (Argon2id).
	Argon2 struct {
		// Memory of one derivation from a password or PIN (Argon2id), 8MiB to 1GiB. The total
		// memory is the product of `argon2.memory` and `argon2.parallel`.
		Memory setting.Size `yaml:"memory" default:"19MiB" min:"8MiB" max:"1GiB"`
		// Passes of one derivation, 1 to 16.
		Passes int `yaml:"passes" default:"2" min:"1" max:"16"`
		// Derivations that run at the same time.
		Parallel int `yaml:"parallel" default:"4" min:"1"`
	} `yaml:"argon2"`
	// Limits of requests.
	Limits struct {
		// Body of a signing request; above it 413.
		SigningRequest setting.Size `yaml:"signing_request" default:"2GiB" above:"0"`
		// Any other body.
		OtherRequest setting.Size `yaml:"other_request" default:"1MiB" above:"0"`
		// Open connections at each listener. For a further one, the connection that has been idle for
		// the longest time gives way, of the address that has the most. If all have requests under
		// way, further ones wait in the queue of the system until one of these ends.
		Connections int `yaml:"connections" default:"4096" above:"0"`
		// Memory that documents may take together while they are signed or verified. The heap grows
		// to up to three times as much. A document that finds none waits for up to five seconds;
		// afterwards 503 with Retry-After. Documents of callers without a token share a quarter. A
		// document of less than 256 KiB never waits.
		DocumentMemory setting.Size `yaml:"document_memory" default:"384MiB" above:"0"`
	} `yaml:"limits"`
	// What may be signed.
	Policy struct {
		// Values of `Signature.Type` that clients may request; others are 403. Default: all.
		AllowedSignatureTypes []string `yaml:"allowed_signature_types"`
		// Whether a hash may be signed without its document (`Hash=True`); otherwise 403.
		AllowHashSigning bool `yaml:"allow_hash_signing" default:"true"`
		// Whether time-stamp services that are not registered may be used.
		AllowThirdPartyTSP bool `yaml:"allow_third_party_tsp"`
	} `yaml:"policy"`
	// Certificates of users' keys.
	Certificates Certificates `yaml:"certificates"`
	// The verification service.
	Verification Verification `yaml:"verification"`
	// The list of accredited certification authorities, by which reports say what is a qualified signature.
	TrustList TrustList `yaml:"trust_list"`
	// Machine-readable powers of attorney.
	Powers Powers `yaml:"powers"`
	// Stored documents that are kept, and the renewal of their archive time stamps.
	Retention Retention `yaml:"retention"`
	// Pages for people.
	Pages Pages `yaml:"pages"`
	// Signatures in XML.
	XML struct {
		// Largest XML document that is signed. Its tree takes several times that in memory, at most
		// 64 MiB and five times the document.
		Document setting.Size `yaml:"document" default:"64MiB" above:"0"`
		// Whether documents with a document type declaration without internal subset are signed.
		// External parts that the declaration names are never read.
		AllowDoctype bool `yaml:"allow_doctype"`
	} `yaml:"xml"`
	// Signatures in PDF.
	PDF struct {
		// Image file (PNG, JPEG or GIF, at most 1 MiB) with the logo or the arms on the visible marks of signatures, unless a
		// request has an image of its own or asks for a mark without one. Empty: none.
		Logo string `yaml:"logo"`
	} `yaml:"pdf"`
	// Signing in two steps.
	TwoStep struct {
		// Whether presign, postsign and enhance need no token, because existing clients send none.
		// **Risk:** everyone with access to the address may have documents stored and time stamps
		// made, within the limits below. They share half of the documents and bytes of the installation; a full share refuses
		// all of them with 429, and callers with a token keep the rest. No key of this service is used.
		Anonymous bool `yaml:"anonymous"`
		// Calls without a token per second, per address (IPv6: per /64) and process, in the long
		// run. Behind a proxy set `trusted_proxies`, otherwise all callers share the proxy's
		// address.
		CallsPerSecond float64 `yaml:"calls_per_second" default:"20" above:"0"`
		// Calls without a token per address and process at once.
		CallsAtOnce int `yaml:"calls_at_once" default:"200" above:"0"`
		// Largest body of a call without a token.
		Request setting.Size `yaml:"request" default:"64MiB" above:"0"`
		// Time between presign and postsign.
		Life time.Duration `yaml:"life" default:"15m" min:"1s"`
		// Time after which a prepared document can be completed by another request, if the process
		// that was completing it died.
		Lease time.Duration `yaml:"lease" default:"15s" min:"1s"`
		// Documents of the installation that may be prepared and not completed; above it 429.
		Objects int64 `yaml:"objects" default:"100000" above:"0"`
		// Bytes of the installation that may be prepared and not completed; above it 429.
		Bytes setting.Size `yaml:"bytes" default:"16GiB" above:"0"`
		// Documents of one caller that may be prepared and not completed; above it 429.
		CallerObjects int64 `yaml:"caller_objects" default:"10000" above:"0"`
		// Bytes of one caller that may be prepared and not completed; above it 429.
		CallerBytes setting.Size `yaml:"caller_bytes" default:"4GiB" above:"0"`
	} `yaml:"two_step"`
	// Documents of one batch.
	BatchItems int `yaml:"batch_items" default:"10000" above:"0"`
	// Time stamps, revocation data and certificates of other authorities.
	Evidence Evidence `yaml:"evidence"`
	// Signatures X Long Type 1.
	LongTerm struct {
		// How much older than the signature time stamp the revocation data of a signature X Long
		// Type 1 may be.
		RevocationAllowance time.Duration `yaml:"revocation_allowance" min:"0s"`
		// Whether older CRLs are accepted for certificates of authorities. Such lists are made
		// every few months.
		OldListsForAuthorities bool `yaml:"old_lists_for_authorities"`
	} `yaml:"long_term"`
	// The log of the process.
	Log struct {
		// `debug`, `info`, `warn` or `error`.
		Level string `yaml:"level" default:"info" oneof:"debug info warn error"`
		// `json` or `text`.
		Format string `yaml:"format" default:"json" oneof:"text json"`
	} `yaml:"log"`
	// Copies of the audit log.
	Audit Audit `yaml:"audit"`
	// Traces of requests, by OpenTelemetry.
	Tracing Tracing `yaml:"tracing"`
	// How long a server still accepts requests after `SIGTERM` while `/readyz` answers 503, so that
	// a balancer sends them elsewhere ([what to set](operations.md#starting-and-stopping)). After
	// Ctrl-C the server does not wait.
	DrainTime time.Duration `yaml:"drain_time" default:"5s" min:"0s"`
	// How long a stopping server waits for running requests after `drain_time`.
	StopTime time.Duration `yaml:"stop_time" default:"30s" min:"0s"`

	parts    Parts
	base     string // directory that relative paths start from
	origin   origin // the file, for the lines of faults
	dev      bool   // serve --dev, with --dev-anywhere too
	loopback bool   // serve --dev without --dev-anywhere: it listens on loopback only
}

// SignIn configures sign-ins of programs.
type SignIn struct {
	// The public client of `clients` that a confirmation by login and password belongs to if it names
	// no `ClientId`, as some programs do. Its tokens also open `{idp_url}/oauth/authorize` for every
	// other client. **Risk:** a program with such a token signs its user in to all applications.
	DefaultClient string `yaml:"default_client"`
}

// Client is one application that may request tokens.
type Client struct {
	// Name of the application. Default: none, required.
	ID string `yaml:"id"`
	// Its name for people, on the pages of the sign-in. Default: `id`.
	Title string `yaml:"title"`
	// File with its secret. Without one it is a public client, which proves nothing.
	SecretFile string `yaml:"secret_file"`
	// Whether it may send passwords of users.
	PasswordGrant bool `yaml:"password_grant"`
	// Addresses that authorization codes may be sent to, compared byte for byte, such as
	// `urn:ietf:wg:oauth:2.0:oob:auto`. An `http` address of `127.0.0.1` or `[::1]` means
	// every port (RFC 8252, 7.3); on another port than the listed one a code needs PKCE. Without
	// an address the client gets no codes.
	RedirectURIs []string `yaml:"redirect_uris"`
	// Whether it may exchange an operator's token for one that acts as a user of the operator.
	// **Risk:** with an operator's token and this client, an attacker can sign as every user of the
	// operator's groups.
	TokenExchange bool `yaml:"token_exchange"`
	// Whether access tokens may be sent to its addresses (`response_type=token`), where browsers
	// store them.
	ImplicitGrant bool `yaml:"implicit_grant"`
	// Whether a client without a secret may omit PKCE when a browser transports its codes.
	// **Risk:** an attacker who intercepts a code gets the token.
	WithoutPKCE bool `yaml:"without_pkce"`
	// Methods of [confirmation](confirmation.md) that the application can handle. Empty: all, but
	// `oath` only for users who have no other.
	ConfirmMethods []string `yaml:"confirm_methods"`
	// Whether the application shows `Title` of a challenge. Then the user must choose on the device
	// the two digits that it has.
	ConfirmTitles bool `yaml:"confirm_titles"`
}

// Names in the configuration of serve --dev.
const (
	DevClient    = "tamga-dev"  // application that the examples sign in with
	DevMasterKey = "master.key" // file of the master key in the data directory
)

// Parts are the packages of the program with their own settings. Each configuration needs new ones,
// because their settings become a part of it.
type Parts struct {
	Notifiers []notify.Plugin
	Holders   []vault.Plugin // the settings below keys choose among them
}

// Sections returns the settings outside of the struct, by their places in the file: those of each
// channel and of each part.
func (c *Config) Sections() (list []setting.Section) {
	for _, b := range c.Messages.budgets {
		list = append(list, setting.Section{Path: "messages.budgets." + strings.ToLower(string(b.channel)), Settings: b.budget})
	}
	for _, n := range c.parts.Notifiers {
		list = append(list, setting.Section{Path: notifierPath(n), Settings: n})
	}
	for _, h := range c.parts.Holders {
		if s := h.Settings(); s != nil {
			list = append(list, setting.Section{Path: holderPath(h), Settings: s})
		}
	}
	return list
}

// Default returns the configuration of an empty file: the defaults of the tags.
func Default(parts Parts) *Config {
	c := &Config{parts: parts}
	setting.Defaults(c)
	for _, s := range c.Sections() {
		setting.Defaults(s.Settings)
	}
	c.Messages.budgets = defaultBudgets()
	return c
}

// Dev returns the configuration of serve --dev with its data in dir. Unless anywhere is true,
// the server may listen on loopback only.
func Dev(dir string, anywhere bool, parts Parts) *Config {
	c := Default(parts)
	c.dev, c.loopback, c.base = true, !anywhere, dir
	c.Clients = []Client{{ID: DevClient, PasswordGrant: true, TokenExchange: true, RedirectURIs: []string{signin.RedirectOutOfBand}}}
	c.SignIn.DefaultClient = DevClient
	c.Messages.Capture = true
	c.MasterKeys.Active = "dev"
	c.MasterKeys.Files = map[string]string{"dev": DevMasterKey}
	c.Log.Format = "text"
	c.TwoStep.Anonymous = true
	c.DrainTime = 0
	return c
}

// IsDev reports whether this is a configuration of serve --dev.
func (c *Config) IsDev() bool { return c.dev }

// Load reads a file ("" for no file) and then applies the settings name=value of the command line. If
// settings are wrong, the others are in the result beside the error, so that a check of the configuration
// can go on.
func Load(file string, settings []string, parts Parts) (*Config, error) {
	if file == "" {
		c := Default(parts)
		return c, c.Apply(settings)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	c, err := Decode(data, file, filepath.Dir(file), parts)
	if c == nil {
		return nil, err
	}
	c.origin.set = settings
	return c, errors.Join(err, c.Apply(settings))
}

// Decode reads the text of a configuration. Faults name its file, if that is not empty. Paths start from base. The
// result is nil if the text is not YAML, and otherwise has the settings without a fault.
func Decode(data []byte, file, base string, parts Parts) (*Config, error) {
	c := Default(parts)
	c.base, c.origin = base, origin{file: file, text: data}
	err := setting.Decode(data, c, c.Sections())
	if err == nil {
		return c, nil
	}
	if errors.Is(err, setting.ErrForm) {
		c = nil
	}
	var faults []error
	for _, fault := range Each(err) {
		var at *setting.Fault
		if errors.As(fault, &at) {
			faults = append(faults, &Fault{File: file, Line: at.Line, Key: keyOf(at.Text), Text: at.Text})
			continue
		}
		for line := range strings.SplitSeq(fault.Error(), "\n") {
			faults = append(faults, &Fault{File: file, Line: lineOf(line), Text: line, said: true})
		}
	}
	return c, errors.Join(faults...)
}

// Apply sets each name=value. The name is a path of keys joined by dots.
func (c *Config) Apply(settings []string) error {
	for _, s := range settings {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("--set %s: want name=value, such as limits.signing_request=10MiB", s)
		}
		keys := strings.Split(name, ".")
		var text strings.Builder
		for i, k := range keys {
			fmt.Fprintf(&text, "%s%q:\n", strings.Repeat(" ", i), k)
		}
		document := strings.TrimSuffix(text.String(), "\n") + " " + value + "\n"
		if err := setting.Decode([]byte(document), c, c.Sections()); err != nil {
			var at *setting.Fault
			if errors.As(err, &at) { // its line is of no file
				err = errors.New(at.Text)
			}
			return fmt.Errorf("--set %s: %w", s, err)
		}
	}
	return nil
}

// Path returns a path of the configuration relative to the directory of its file.
func (c *Config) Path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.base, p)
}

// BaseURL returns PublicURL without its trailing slash. If PublicURL is empty, BaseURL derives
// the address from Listen and TLS.
func (c *Config) BaseURL() string {
	if c.PublicURL != "" {
		return strings.TrimSuffix(c.PublicURL, "/")
	}
	scheme := "http"
	if c.TLS.CertificateFile != "" {
		scheme = "https"
	}
	return scheme + "://" + c.Listen
}

// Validate returns all faults of the configuration joined, or nil. types are the values of
// Signature.Type that the program serves. Validate also fills in the default claims of identity
// providers.
func (c *Config) Validate(types []string) error {
	host, port, hostErr := net.SplitHostPort(c.Listen)
	database, _ := url.Parse(c.Database)
	postgres := database != nil && (database.Scheme == "postgres" || database.Scheme == "postgresql")
	checks := []struct {
		ok   bool
		text string
	}{
		{hostErr == nil && isPort(port), "listen: want HOST:PORT, such as 127.0.0.1:8080, with a port up to 65535"},
		{!c.loopback || IsLoopback(host), "listen: --dev listens on loopback only (its passwords are stored in a file); add --dev-anywhere to mean it"},
		{hostErr != nil || !setting.IsHTTP(c.BaseURL()) || !isEveryAddress(c.Host()), "public_url: " + c.BaseURL() + " would be in every issued certificate for ever, and it leads nowhere: set the address people know the service by, such as public_url: https://sign.example.org"},
		{c.MetricsListen == "" || isAddress(c.MetricsListen) && c.MetricsListen != c.Listen, "metrics_listen: want HOST:PORT, another address than listen, such as 127.0.0.1:9090"},
		{!c.ProxyProtocol || len(c.TrustedProxies) > 0, "proxy_protocol: want trusted_proxies: the header is read from these addresses only"},
		{(c.TLS.CertificateFile == "") == (c.TLS.KeyFile == ""), "tls: certificate_file and key_file go together"},
		{!c.TLS.ClientCertificates || c.TLS.CertificateFile != "", "tls.client_certificates: want certificate_file and key_file: a client shows a certificate only to a server that has one"},
		{c.GOSTTLS.Socket != "" || c.GOSTTLS.FrontEndUser == "", "gost_tls.front_end_user: want gost_tls.socket as well"},
		{len(c.Path(c.GOSTTLS.Socket)) < 100, "gost_tls.socket: want a path of less than 100 bytes, as the system does"},
		{c.OperatorCertificates.AuthoritiesFile == "" || len(c.OperatorCertificates.RevocationFiles) > 0, "operator_certificates.revocation_files: want the revocation lists of the authorities: without them their certificates are refused"},
		{c.BlobDir != "" && c.Path(c.BlobDir) != c.Path(c.SpoolDir), "blob_dir: want a directory for prepared documents, another than spool_dir"},
		{strings.HasPrefix(c.Database, "sqlite:") && len(c.Database) > len("sqlite:") || postgres, "database: want sqlite:PATH or postgres://USER@HOST:PORT/NAME"},
		{!postgres || !hasPassword(database), "database: a password does not belong into the URL; put it into a file and name that in database_password_file"},
		{c.loopback || c.MasterKeys.Active != "", "master_keys.active: want the name of the key that seals; make one with: openssl rand -hex 32 > master.key"},
		{c.MasterKeys.Active == "" || c.MasterKeys.Files[c.MasterKeys.Active] != "", "master_keys.files: want a file for the active key"},
		{!isOneOf(c.DocumentStore, c.SignServer, c.IDP, c.SVS, c.Devices.Path), "document_store: want a path other than those of the other services"},
		{c.SignServer != c.IDP && c.IDP != c.SVS && c.SVS != c.SignServer, "sign_server, idp and svs: want different paths"},
		{!isOneOf(c.Devices.Path, c.SignServer, c.IDP, c.SVS), "devices.path: want a path other than those of the services"},
		{strings.TrimSpace(c.Pages.Name) != "" && len(c.Pages.Name) <= 128 && !strings.ContainsFunc(c.Pages.Name, unicode.IsControl), "pages.name: want a name of up to 128 bytes"},
		{c.Tokens.RefreshLife >= c.Tokens.AccessLife, "tokens.refresh_life: want at least tokens.access_life"},
	}
	faults := setting.Check("", c)
	for _, s := range c.Sections() {
		faults = append(faults, setting.Check(s.Path, s.Settings)...)
	}
	for _, check := range checks {
		if !check.ok {
			faults = append(faults, errors.New(check.text))
		}
	}
	if _, err := rest.ParseProxies(c.TrustedProxies); err != nil {
		faults = append(faults, fmt.Errorf("trusted_proxies: %w", err))
	}
	seen := map[string]bool{}
	for i, client := range c.Clients {
		if client.ID == "" || seen[client.ID] || client.ID == PagesClient {
			faults = append(faults, fmt.Errorf("clients[%d].id: want a unique name other than "+PagesClient, i))
		}
		seen[client.ID] = true
	}
	for i, client := range c.Clients {
		for _, name := range client.ConfirmMethods {
			if !slices.Contains(confirm.ClientMethodNames(), name) {
				faults = append(faults, fmt.Errorf("clients[%d].confirm_methods: %q is unknown, want some of %s", i, name, strings.Join(confirm.ClientMethodNames(), ", ")))
			}
		}
	}
	faults = append(faults, c.checkHolders()...)
	faults = append(faults, c.Oath.check(c.Messages.Title)...)
	faults = append(faults, c.checkExternal()...)
	faults = append(faults, c.checkDirectories()...)
	faults = append(faults, c.Users.check()...)
	faults = append(faults, c.Certificates.check()...)
	faults = append(faults, c.checkMessages()...)
	faults = append(faults, c.Devices.check()...)
	faults = append(faults, c.Confirmation.check(&c.Documents)...)
	faults = append(faults, c.Confirmation.checkPasskeys(c.BaseURL()))
	faults = append(faults, c.UserPolicies.check()...)
	faults = append(faults, c.Webhooks.check()...)
	faults = append(faults, c.checkBucket()...)
	faults = append(faults, c.checkOperations(types)...)
	faults = append(faults, c.Evidence.check()...)
	faults = append(faults, c.Audit.Export.check()...)
	faults = append(faults, c.TrustList.check(), c.Verification.check(), c.Powers.check())
	faults = append(faults, c.Retention.check()...)
	return errors.Join(faults...)
}

// OnLoopback reports whether this is the configuration of serve --dev and only this machine reaches
// the server.
func (c *Config) OnLoopback() bool { return c.loopback }

// isPort reports whether a text is the number of a port, or a name such as https.
func isPort(text string) bool {
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		return true
	}
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz-") == ""
}

// IsLoopback reports whether a host, a name or an address, means only this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// isEveryAddress reports whether a host to listen on means all addresses of a machine.
func isEveryAddress(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "" || err == nil && a.Unmap().WithZone("").IsUnspecified()
}

// Host returns the host of BaseURL, or "" if there is none.
func (c *Config) Host() string {
	u, err := url.Parse(c.BaseURL())
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func hasPassword(u *url.URL) bool {
	_, set := u.User.Password()
	return set || u.Query().Has("password")
}

func isOneOf(s string, names ...string) bool {
	for _, n := range names {
		if s == n {
			return true
		}
	}
	return false
}

// Print writes the configuration as YAML, including defaults. Settings of secrets are paths, so the
// text contains no secrets.
func (c *Config) Print(w io.Writer) error {
	document, err := setting.Encode(c, c.Sections())
	if err != nil {
		return err
	}
	out := yaml.NewEncoder(w)
	out.SetIndent(2)
	return out.Encode(document)
}

// Each returns the errors that are joined in one.
func Each(err error) (list []error) {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, Each(e)...)
		}
		return list
	}
	return []error{err}
}

// isAddress reports whether a text is HOST:PORT.
func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	return err == nil && isPort(port)
}
