// Package config is the configuration of the program: one struct, its defaults and its checks.
//
// Begin with Load, which reads a file and the settings of the command line, and Validate, which
// reports every fault. Dev is the configuration of serve --dev. The package opens nothing that
// a setting names: no secret, no socket, no database.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tamga/internal/domain/auth"
	"tamga/internal/domain/keys"
	"tamga/internal/web/rest"
	"tamga/sig/xmldsig"
)

// Config is the whole configuration of a process, one YAML file. Its comments
// are the manual; docs/config.md prints them. Secrets are paths of files, never
// values: a file of secrets belongs to the service's user alone (mode 0600).
// Relative paths are relative to the directory of the configuration file.
type Config struct {
	// Address the server listens on, HOST:PORT. Port 0 takes a free one.
	Listen string `yaml:"listen"`
	// Address people and certificates know the server by, without a trailing
	// slash; links in issued certificates start with it, for ever. Default: http://LISTEN,
	// with tls https://LISTEN. Required if listen is on every address of the machine.
	PublicURL string `yaml:"public_url"`
	// Certificate chain and key (PEM) for TLS of Go's own suites. Both empty: plain
	// HTTP, for loopback or behind a proxy.
	TLS struct {
		CertificateFile string `yaml:"certificate_file"`
		KeyFile         string `yaml:"key_file"`
		// Whether clients are asked for a certificate, which may identify an operator
		// instead of a token. Default false: browsers bother their users with it.
		ClientCertificates bool `yaml:"client_certificates"`
	} `yaml:"tls"`
	// Addresses and networks (CIDR) of the proxies in front whose word about the address
	// of a client is believed: by X-Forwarded-For, by Forwarded, and by the PROXY
	// protocol. Empty: nobody's. They must overwrite or remove what clients send.
	TrustedProxies []string `yaml:"trusted_proxies"`
	// Whether trusted_proxies begin each connection with a header of the PROXY
	// protocol, version 1 or 2. Then they must. Default false.
	ProxyProtocol bool `yaml:"proxy_protocol"`
	// The door for GOST-TLS: HAProxy with gost-engine in front, made by "tamga
	// gost-tls init".
	GOSTTLS struct {
		// Unix socket the front end connects to; the program creates it. Empty: there is
		// no such door. Its directory must not be writable by others.
		Socket string `yaml:"socket"`
		// User the front end runs as, a name or a number: the only one whose connections
		// to the socket are taken. Empty: the user of this program.
		FrontEndUser string `yaml:"front_end_user"`
	} `yaml:"gost_tls"`
	// Whose certificates of operators count. Each operator's certificate is
	// registered besides: "tamga operator certificate".
	OperatorCertificates struct {
		// Whether the built-in authority's do. Default true.
		BuiltIn bool `yaml:"built_in"`
		// Certificates (PEM) of further authorities: self-issued ones are trusted, the
		// others help to build paths.
		AuthoritiesFile string `yaml:"authorities_file"`
		// Files with the current revocation lists of these authorities (DER or PEM),
		// read at each judgement; whatever renews one has to replace it whole.
		// Certificates that no current list covers are refused.
		RevocationFiles []string `yaml:"revocation_files"`
	} `yaml:"operator_certificates"`
	// Directory for documents under way. The program creates it, mode 0700. It
	// must be on a disk with room for the largest requests at once.
	SpoolDir string `yaml:"spool_dir"`
	// Directory for stored documents and for those prepared for signing in two steps.
	// The program creates it, mode 0700. Processes over one database share it.
	BlobDir string `yaml:"blob_dir"`
	// Bucket for these in the place of blob_dir.
	Bucket    Bucket    `yaml:"bucket"`
	Documents Documents `yaml:"documents"`
	// Requests of v2, and what is kept for requests with an Idempotency-Key.
	Operations  Operations  `yaml:"operations"`
	Repetitions Repetitions `yaml:"repetitions"`
	// Database: sqlite:PATH (created when absent) or postgres://USER@HOST:PORT/NAME.
	Database string `yaml:"database"`
	// File with the PostgreSQL password. Empty: the URL or the server needs none.
	DatabasePasswordFile string `yaml:"database_password_file"`
	// Connections to the database of this process: all of them on PostgreSQL, those that
	// read on SQLite. Default 8, so that twelve processes fit into the 100 connections of
	// a PostgreSQL server as it is delivered.
	DatabaseConnections int `yaml:"database_connections"`
	// Master keys that seal private keys at rest: 32 octets each, in hexadecimal,
	// one file per key. The active one seals; all of them open.
	MasterKeys struct {
		Active string            `yaml:"active"`
		Files  map[string]string `yaml:"files"`
	} `yaml:"master_keys"`
	// First path element of each service, and the names clients know them by.
	SignServer string `yaml:"sign_server"` // default /SignServer
	IDP        string `yaml:"idp"`         // default /STS
	SVS        string `yaml:"svs"`         // verification service; default /SVS
	// Path of the document store. Default /DocumentStore.
	DocumentStore string `yaml:"document_store"`
	// Resource the tokens are for, and other spellings clients use for it.
	Resource        string   `yaml:"resource"`
	ResourceAliases []string `yaml:"resource_aliases"`
	// Applications that may ask for tokens.
	Clients []Client `yaml:"clients"`
	// Other identity providers that users may sign in at.
	External []External `yaml:"external"`
	Tokens   struct {
		// Life of an access token. Default 300s, what existing clients expect.
		AccessLife time.Duration `yaml:"access_life"`
		// Life of an authorization code, at most 10m. Default 60s.
		CodeLife time.Duration `yaml:"code_life"`
		// How long somebody stays signed in with the scope offline_access, however often
		// the tokens are refreshed. Default 720h, thirty days.
		RefreshLife time.Duration `yaml:"refresh_life"`
		// How long a new signing key is published before it signs, and an old one is kept
		// after that ("tamga key rotate-tokens"). Default 1h.
		KeyOverlap time.Duration `yaml:"key_overlap"`
	} `yaml:"tokens"`
	Passwords struct {
		// Wrong passwords in Window before the user is locked out for LockOut.
		Attempts int           `yaml:"attempts"` // default 10
		Window   time.Duration `yaml:"window"`   // default 15m
		LockOut  time.Duration `yaml:"lock_out"` // default 15m
		// Part of argon2.parallel that is kept for sign-ins of clients that proved their
		// secret and from addresses that a user signed in from. Default 0.5.
		Reserved float64 `yaml:"reserved"`
		// Attempts of other callers that may wait for a derivation: of all, of one address,
		// and how long. Above that they are told to come back. Defaults 64, 8, 700ms.
		Waiting        int           `yaml:"waiting"`
		WaitingAddress int           `yaml:"waiting_address"`
		Wait           time.Duration `yaml:"wait"`
		// Attempts of such callers: from one address a second in the long run and at once,
		// and at one login a minute and at once. Trusted callers have ten times as many; a
		// client that proved its secret has no limit by address. Defaults 1, 30, 6, 10.
		AddressPerSecond float64 `yaml:"address_per_second"`
		AddressAtOnce    int     `yaml:"address_at_once"`
		LoginPerMinute   float64 `yaml:"login_per_minute"`
		LoginAtOnce      int     `yaml:"login_at_once"`
		// Addresses that are remembered after a correct password, and how long after the
		// last one. Defaults 50000, 168h.
		KnownAddresses int           `yaml:"known_addresses"`
		KnownFor       time.Duration `yaml:"known_for"`
	} `yaml:"passwords"`
	Users    Users    `yaml:"users"`
	Messages Messages `yaml:"messages"`
	// One-time passwords of hardware tokens and apps.
	Oath Oath `yaml:"oath"`
	// Mobile devices of users.
	Devices Devices `yaml:"devices"`
	// Policies of users who have none of their own, nor their group ("tamga policy").
	UserPolicies Policies `yaml:"user_policies"`
	// Systems that listen to events.
	Webhooks Webhooks `yaml:"webhooks"`
	PIN      struct {
		// Wrong PINs in a row before the key is blocked. Default 10.
		Attempts int `yaml:"attempts"`
		// Whether new keys have a PIN: Required, Forbid or Allow. Default Allow.
		Mode string `yaml:"mode"`
		// Least length of a new PIN in characters, 1 to 64. Default 6.
		MinLength int `yaml:"min_length"`
		// Whether a new PIN may repeat one character or count up or down, such as 123456.
		// Default false.
		AllowSimple bool `yaml:"allow_simple"`
	} `yaml:"pin"`
	// Cost of one derivation from a password or a PIN (Argon2id), and how many run
	// at a time; memory taken is their product.
	Argon2 struct {
		Memory   Size `yaml:"memory"`   // default 19MiB
		Passes   int  `yaml:"passes"`   // default 2
		Parallel int  `yaml:"parallel"` // derivations at a time, default 4
	} `yaml:"argon2"`
	Limits struct {
		SigningRequest Size `yaml:"signing_request"` // body of a signing request, default 2GiB
		OtherRequest   Size `yaml:"other_request"`   // any other body, default 1MiB
		// Connections open at a time, at each listener; further ones wait. Default 4096.
		Connections int `yaml:"connections"`
	} `yaml:"limits"`
	Policy struct {
		// Values of Signature.Type that may be asked for. Empty: all there are.
		AllowedSignatureTypes []string `yaml:"allowed_signature_types"`
		// Whether a hash may be signed without its document. Default true.
		AllowHashSigning bool `yaml:"allow_hash_signing"`
		// Whether time-stamp services that are not registered may be used. Default
		// false.
		AllowThirdPartyTSP bool `yaml:"allow_third_party_tsp"`
	} `yaml:"policy"`
	Certificates Certificates `yaml:"certificates"`
	// The service that judges signatures for whoever asks.
	Verification Verification `yaml:"verification"`
	XML          struct {
		// Largest XML document that is signed. It takes several times its size in
		// memory. Default 64MiB.
		Document Size `yaml:"document"`
		// Whether documents with a document type declaration without internal subset
		// are signed. What it names outside is never read. Default false.
		AllowDoctype bool `yaml:"allow_doctype"`
	} `yaml:"xml"`
	TwoStep struct {
		// Whether presign, postsign and enhance ask for no token, as existing clients
		// of two steps send none. Then whoever reaches the address may have documents
		// kept and time stamps made, within the bounds below. Default false.
		Anonymous bool `yaml:"anonymous"`
		// Calls without a token an address may make: a second in the long run, and at
		// once; and the largest body of one. Defaults 20, 200, 64MiB.
		CallsPerSecond float64 `yaml:"calls_per_second"`
		CallsAtOnce    int     `yaml:"calls_at_once"`
		Request        Size    `yaml:"request"`
		// Time between presign and postsign. Default 15m.
		Life time.Duration `yaml:"life"`
		// What may be prepared and not completed: of the installation, and of one
		// caller. Defaults 100000 and 16GiB, 10000 and 4GiB.
		Objects       int64 `yaml:"objects"`
		Octets        Size  `yaml:"octets"`
		CallerObjects int64 `yaml:"caller_objects"`
		CallerOctets  Size  `yaml:"caller_octets"`
	} `yaml:"two_step"`
	// Documents of one batch. Default 10000.
	BatchItems int      `yaml:"batch_items"`
	Evidence   Evidence `yaml:"evidence"`
	LongTerm   struct {
		// How much older than the signature time stamp revocation data may be that
		// goes into a signature X Long Type 1. Default 0s.
		RevocationAllowance time.Duration `yaml:"revocation_allowance"`
		// Whether older data may stand for certificates of authorities, whose lists
		// are made every few months. Default false.
		OldListsForAuthorities bool `yaml:"old_lists_for_authorities"`
	} `yaml:"long_term"`
	Log struct {
		Level  string `yaml:"level"`  // debug, info, warn, error; default info
		Format string `yaml:"format"` // text or json; default json
	} `yaml:"log"`
	// How long a server that gets SIGTERM goes on taking requests while /readyz answers
	// 503, so that a balancer sends new ones elsewhere. Default 5s; 0s in --dev, and after
	// Ctrl-C.
	DrainTime time.Duration `yaml:"drain_time"`
	// How long a stopping server waits for requests under way after that. Default 30s.
	StopTime time.Duration `yaml:"stop_time"`

	base     string // directory that relative paths start from
	dev      bool   // serve --dev, with --dev-anywhere too
	loopback bool   // serve --dev without --dev-anywhere: it listens on loopback only
}

// Client is one application that may ask for tokens.
type Client struct {
	ID string `yaml:"id"`
	// File with the secret. Empty: a public client, which proves nothing.
	SecretFile string `yaml:"secret_file"`
	// Whether it may send passwords of users. Default false.
	PasswordGrant bool `yaml:"password_grant"`
	// Addresses authorization codes may be sent to, compared octet for octet, such as
	// urn:ietf:wg:oauth:2.0:oob:auto. Empty: none, so the client gets no codes.
	RedirectURIs []string `yaml:"redirect_uris"`
	// Whether it may exchange an operator's token for one to act as a user of theirs.
	// Default false.
	TokenExchange bool `yaml:"token_exchange"`
	// Whether it may have access tokens sent to its addresses (response_type token),
	// where browsers keep them. Default false.
	ImplicitGrant bool `yaml:"implicit_grant"`
	// Whether a client without a secret may leave out PKCE when a browser carries its
	// codes. Default false: whoever catches a code would have the token.
	WithoutPKCE bool `yaml:"without_pkce"`
}

// Names in the configuration of serve --dev.
const (
	DevClient    = "tamga-dev"  // application that the examples sign in with
	DevMasterKey = "master.key" // file of the master key in the data directory
)

// Default returns the configuration of an empty file.
func Default() *Config {
	c := &Config{
		Listen:     "127.0.0.1:8080",
		SpoolDir:   "spool",
		BlobDir:    "blobs",
		BatchItems: 10_000,
		Evidence:   defaultEvidence(),

		Verification: defaultVerification(),
		Database:     "sqlite:tamga.db",
		SignServer:   "/SignServer",
		IDP:          "/STS",
		SVS:          "/SVS",

		DocumentStore: "/DocumentStore",
		Resource:      "urn:cryptopro:dss:signserver:signserver",
		DrainTime:     5 * time.Second,
		StopTime:      30 * time.Second,

		DatabaseConnections: 8,
	}
	c.Tokens.AccessLife, c.Tokens.CodeLife = 300*time.Second, time.Minute
	c.Tokens.RefreshLife, c.Tokens.KeyOverlap = 30*24*time.Hour, time.Hour
	c.Users, c.Messages, c.Devices = defaultUsers(), defaultMessages(), defaultDevices()
	c.Oath = defaultOath()
	c.Passwords.Attempts, c.Passwords.Window, c.Passwords.LockOut = 10, 15*time.Minute, 15*time.Minute
	attempts := auth.DefaultAttempts()
	c.Passwords.Reserved, c.Passwords.Waiting, c.Passwords.WaitingAddress, c.Passwords.Wait = attempts.Reserved, attempts.Waiting, attempts.OfOne, attempts.Wait
	c.Passwords.AddressPerSecond, c.Passwords.AddressAtOnce = 1, 30
	c.Passwords.LoginPerMinute, c.Passwords.LoginAtOnce = 6, 10
	c.Passwords.KnownAddresses, c.Passwords.KnownFor = 50_000, 7*24*time.Hour
	c.UserPolicies = defaultPolicies()
	c.PIN.Attempts, c.PIN.Mode, c.PIN.MinLength = 10, string(keys.PINAllow), keys.DefaultPINLength
	c.Certificates = defaultCertificates()
	c.Operations, c.Repetitions = defaultOperations(), defaultRepetitions()
	c.Documents = defaultDocuments()
	c.OperatorCertificates.BuiltIn = true
	c.Argon2.Memory, c.Argon2.Passes, c.Argon2.Parallel = 19<<20, 2, 4
	c.Limits.SigningRequest, c.Limits.OtherRequest, c.Limits.Connections = 2<<30, 1<<20, 4096
	c.Policy.AllowHashSigning = true
	c.XML.Document = xmldsig.DefaultMaxSize
	c.TwoStep.CallsPerSecond, c.TwoStep.CallsAtOnce, c.TwoStep.Request = 20, 200, 64<<20
	c.TwoStep.Life = 15 * time.Minute
	c.TwoStep.Objects, c.TwoStep.Octets = 100_000, 16<<30
	c.TwoStep.CallerObjects, c.TwoStep.CallerOctets = 10_000, 4<<30
	c.Log.Level, c.Log.Format = "info", "json"
	return c
}

// Dev returns the configuration of serve --dev with its data in dir. Unless anywhere is true,
// the server may listen on loopback only.
func Dev(dir string, anywhere bool) *Config {
	c := Default()
	c.dev, c.loopback, c.base = true, !anywhere, dir
	c.Clients = []Client{{ID: DevClient, PasswordGrant: true, TokenExchange: true, RedirectURIs: []string{auth.RedirectOutOfBand}}}
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

// Load reads a file, which may be "" for none, and then the settings
// name=value of the command line over it.
func Load(file string, settings []string) (*Config, error) {
	c := Default()
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		if err := c.decode(data); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		c.base = filepath.Dir(file)
	}
	return c, c.Apply(settings)
}

func (c *Config) decode(data []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
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
		if err := c.decode([]byte(document)); err != nil {
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
// Signature.Type that the program serves. Validate also fills in claims of identity providers
// that were left out.
func (c *Config) Validate(types []string) error {
	host, _, hostErr := net.SplitHostPort(c.Listen)
	isPath := func(p string) bool {
		return len(p) > 1 && p[0] == '/' && !strings.ContainsAny(p[1:], "/{}?# ")
	}
	database, _ := url.Parse(c.Database)
	postgres := database != nil && (database.Scheme == "postgres" || database.Scheme == "postgresql")
	checks := []struct {
		ok   bool
		text string
	}{
		{hostErr == nil, "listen: want HOST:PORT, such as 127.0.0.1:8080"},
		{!c.loopback || IsLoopback(host), "listen: --dev listens on loopback only (its passwords lie in a file); add --dev-anywhere to mean it"},
		{c.PublicURL == "" || isHTTP(c.PublicURL), "public_url: want http:// or https:// and a host"},
		{hostErr != nil || !isHTTP(c.BaseURL()) || !isEveryAddress(c.Host()), "public_url: " + c.BaseURL() + " would be in every issued certificate for ever, and it leads nowhere: set the address people know the service by, such as public_url: https://sign.example.org"},
		{!c.ProxyProtocol || len(c.TrustedProxies) > 0, "proxy_protocol: want trusted_proxies: the header is read from these addresses only"},
		{(c.TLS.CertificateFile == "") == (c.TLS.KeyFile == ""), "tls: certificate_file and key_file go together"},
		{!c.TLS.ClientCertificates || c.TLS.CertificateFile != "", "tls.client_certificates: want certificate_file and key_file: a client shows a certificate only to a server that has one"},
		{c.GOSTTLS.Socket != "" || c.GOSTTLS.FrontEndUser == "", "gost_tls.front_end_user: want gost_tls.socket as well"},
		{len(c.Path(c.GOSTTLS.Socket)) < 100, "gost_tls.socket: want a path of less than 100 octets, as the system does"},
		{c.OperatorCertificates.AuthoritiesFile == "" || len(c.OperatorCertificates.RevocationFiles) > 0, "operator_certificates.revocation_files: want the revocation lists of the authorities: without them their certificates are refused"},
		{c.SpoolDir != "", "spool_dir: want a directory for documents under way"},
		{c.BlobDir != "" && c.Path(c.BlobDir) != c.Path(c.SpoolDir), "blob_dir: want a directory for prepared documents, another than spool_dir"},
		{strings.HasPrefix(c.Database, "sqlite:") && len(c.Database) > len("sqlite:") || postgres, "database: want sqlite:PATH or postgres://USER@HOST:PORT/NAME"},
		{!postgres || !hasPassword(database), "database: a password does not belong into the URL; put it into a file and name that in database_password_file"},
		{c.loopback || c.MasterKeys.Active != "", "master_keys.active: want the name of the key that seals; make one with: openssl rand -hex 32 > master.key"},
		{c.MasterKeys.Active == "" || c.MasterKeys.Files[c.MasterKeys.Active] != "", "master_keys.files: want a file for the active key"},
		{isPath(c.SignServer), "sign_server: want one path element, such as /SignServer"},
		{isPath(c.IDP), "idp: want one path element, such as /STS"},
		{isPath(c.SVS), "svs: want one path element, such as /SVS"},
		{isPath(c.DocumentStore) && !isOneOf(c.DocumentStore, c.SignServer, c.IDP, c.SVS, c.Devices.Path), "document_store: want one path element, such as /DocumentStore, another than those of the other services"},
		{c.SignServer != c.IDP && c.IDP != c.SVS && c.SVS != c.SignServer, "sign_server, idp and svs: want different paths"},
		{isPath(c.Devices.Path) && !isOneOf(c.Devices.Path, c.SignServer, c.IDP, c.SVS), "devices.path: want one path element, such as /DssApiGateway, another than those of the services"},
		{c.Verification.CallsPerSecond > 0 && c.Verification.CallsAtOnce > 0 && c.Verification.Request > 0, "verification: calls_per_second, calls_at_once and request: want more than 0"},
		{c.Verification.Wait > 0 && c.Verification.Deadline > 0, "verification: wait and deadline: want more than 0, such as 10s and 30s"},
		{c.Resource != "", "resource: want the name tokens are for"},
		{c.Tokens.AccessLife >= time.Second, "tokens.access_life: want at least 1s"},
		{c.Tokens.CodeLife >= time.Second && c.Tokens.CodeLife <= 10*time.Minute, "tokens.code_life: want 1s to 10m"},
		{c.Passwords.Attempts > 0 && c.Passwords.Window > 0 && c.Passwords.LockOut > 0, "passwords: attempts, window and lock_out: want more than 0"},
		{c.Passwords.Reserved >= 0 && c.Passwords.Reserved <= 1, "passwords.reserved: want 0 to 1"},
		{c.Passwords.Waiting > 0 && c.Passwords.WaitingAddress > 0 && c.Passwords.Wait > 0, "passwords: waiting, waiting_address and wait: want more than 0"},
		{c.Passwords.AddressPerSecond > 0 && c.Passwords.AddressAtOnce > 0 && c.Passwords.LoginPerMinute > 0 && c.Passwords.LoginAtOnce > 0, "passwords: address_per_second, address_at_once, login_per_minute and login_at_once: want more than 0"},
		{c.Passwords.KnownAddresses > 0 && c.Passwords.KnownFor > 0, "passwords: known_addresses and known_for: want more than 0"},
		{c.PIN.Attempts > 0, "pin.attempts: want more than 0"},
		{c.PIN.MinLength >= 1 && c.PIN.MinLength <= keys.MaxPINLength, "pin.min_length: want 1 to 64"},
		{c.Tokens.RefreshLife >= c.Tokens.AccessLife, "tokens.refresh_life: want at least tokens.access_life"},
		{c.Tokens.KeyOverlap >= 0, "tokens.key_overlap: want 0s or more"},
		{c.PIN.Mode == string(keys.PINRequired) || c.PIN.Mode == string(keys.PINForbid) || c.PIN.Mode == string(keys.PINAllow), "pin.mode: want Required, Forbid or Allow"},
		{c.Argon2.Memory >= 8<<20 && c.Argon2.Memory <= 1<<30, "argon2.memory: want 8MiB to 1GiB"},
		{c.Argon2.Passes >= 1 && c.Argon2.Passes <= 16, "argon2.passes: want 1 to 16"},
		{c.Argon2.Parallel >= 1, "argon2.parallel: want at least 1"},
		{c.Limits.SigningRequest > 0 && c.Limits.OtherRequest > 0, "limits: want sizes above 0"},
		{c.Limits.Connections > 0, "limits.connections: want more than 0"},
		{c.XML.Document > 0, "xml.document: want a size above 0"},
		{c.TwoStep.CallsPerSecond > 0 && c.TwoStep.CallsAtOnce > 0, "two_step: calls_per_second and calls_at_once: want more than 0"},
		{c.TwoStep.Request > 0 && c.TwoStep.Octets > 0 && c.TwoStep.CallerOctets > 0, "two_step: request, octets and caller_octets: want sizes above 0"},
		{c.TwoStep.Life >= time.Second, "two_step.life: want at least 1s"},
		{c.TwoStep.Objects > 0 && c.TwoStep.CallerObjects > 0, "two_step: objects and caller_objects: want more than 0"},
		{c.BatchItems > 0, "batch_items: want more than 0"},
		{c.LongTerm.RevocationAllowance >= 0, "long_term.revocation_allowance: want 0s or more"},
		{isOneOf(c.Log.Level, "debug", "info", "warn", "error"), "log.level: want debug, info, warn or error"},
		{isOneOf(c.Log.Format, "text", "json"), "log.format: want text or json"},
		{c.DatabaseConnections >= 2, "database_connections: want at least 2"},
		{c.DrainTime >= 0 && c.StopTime >= 0, "drain_time and stop_time: want 0s or more"},
	}
	var faults []error
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
		if client.ID == "" || seen[client.ID] {
			faults = append(faults, fmt.Errorf("clients[%d].id: want a name of its own", i))
		}
		seen[client.ID] = true
	}
	faults = append(faults, c.Oath.check(c.Messages.Title)...)
	faults = append(faults, c.checkExternal()...)
	faults = append(faults, c.Users.check()...)
	faults = append(faults, c.Certificates.check()...)
	faults = append(faults, c.Messages.check()...)
	faults = append(faults, c.Devices.check()...)
	faults = append(faults, c.UserPolicies.check()...)
	faults = append(faults, c.Webhooks.check()...)
	faults = append(faults, c.checkDocuments()...)
	faults = append(faults, c.checkOperations(types)...)
	faults = append(faults, c.Evidence.check()...)
	return errors.Join(faults...)
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// IsLoopback reports whether a host, a name or an address, is this machine alone.
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

// Size is a number of octets, written as 1048576, 1MiB or 2GiB.
type Size int64

var sizeUnits = []struct {
	name string
	size Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// UnmarshalText reads a size with or without a unit.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), Size(1)
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || Size(n) > (1<<62)/unit {
		return fmt.Errorf("%q is not a size: want octets or a number with KiB, MiB or GiB", text)
	}
	*s = Size(n) * unit
	return nil
}

// MarshalText writes a size with the largest unit that keeps it whole.
func (s Size) MarshalText() ([]byte, error) {
	for _, u := range sizeUnits {
		if s > 0 && s%u.size == 0 {
			return fmt.Appendf(nil, "%d%s", int64(s/u.size), u.name), nil
		}
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}

// Print writes the configuration as YAML, defaults included. Settings that name secrets are
// paths, so the text holds none.
func (c *Config) Print(w io.Writer) error {
	out := yaml.NewEncoder(w)
	out.SetIndent(2)
	return out.Encode(c)
}
